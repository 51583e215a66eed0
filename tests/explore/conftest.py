"""One server and one browser for all tests of the page that run in a process."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.explore.page import Models, Page, Server, browsing, make_models, serving


@pytest.fixture(scope="session")
def models(tmp_path_factory: pytest.TempPathFactory) -> Models:
    return make_models(tmp_path_factory.mktemp("explored"))


@pytest.fixture(scope="session")
def server(models: Models) -> Iterator[Server]:
    with serving(models.paths, "--import", str(models.plugin)) as running:
        yield running


@pytest.fixture(scope="session")
def browser() -> Iterator[Page]:
    with browsing() as page:
        yield page


@pytest.fixture
def page(browser: Page, server: Server) -> Iterator[Page]:
    browser.open(server.address, "#input=5+17+3+17&a=0")
    yield browser
    browser.check_quiet()
