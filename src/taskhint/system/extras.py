"""Packages that only some work needs: where one is missing, one line names the extra to install.

Everything that imports such a package asks here first. The command line needs nothing else, since
the line is a UserError.
"""

from __future__ import annotations

from importlib.util import find_spec

from taskhint.system.errors import UserError

# What is imported -> the extra of pyproject.toml that has it, and its name for pip.
EXTRAS = {
    "entmax": ("entmax", "entmax"),
    "matplotlib": ("report", "matplotlib"),
    "ray": ("ray", "ray"),
    "starlette": ("explore", "starlette"),
    "transformer_lens": ("lens", "transformer-lens"),
    "transformers": ("transformers", "transformers"),
    "uvicorn": ("explore", "uvicorn"),
}


def installed(module: str) -> bool:
    """Whether it can be imported; it is not."""
    try:
        return find_spec(module) is not None
    except ValueError:  # a module that is None in sys.modules, or was made by hand
        return False


def need(module: str, what: str, extra: str = "") -> None:
    """Refuse `what` if a package is missing, before any work is done."""
    if not installed(module):
        usual, package = EXTRAS[module]
        raise UserError(
            f"{what} needs the package {package}; "
            f"install it with: pip install 'taskhint[{extra or usual}]'"
        )
