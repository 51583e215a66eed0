"""Whether block 2 still counts right at lengths at which attention over all pairs of tokens would
take days.

Shapes: T tokens, D width.
"""

from __future__ import annotations

import torch
from torch import Tensor

from taskhint.construct.coordinates import Coordinates
from taskhint.data.batch import Group
from taskhint.model.attention.paths import attend_flat
from taskhint.model.decoder import Decoder
from taskhint.model.places import Places

SHORT = 1000


@torch.no_grad()
def counts_right(decoder: Decoder, at: Coordinates, copies: int) -> bool:
    """Whether the model repeats the smaller symbol once more after all but one of its copies, and
    then moves on.

    The stream after block 1 is that of an input of SHORT copies and one larger symbol. Its rows
    differ by their roundings: those that make each decision hardest are repeated until there are
    `copies` of them.
    """
    inputs, between, answers = _rows_after_first_block(decoder, at.symbols)
    mark = at.mark.start  # of the smaller symbol
    low_in, high_in = inputs[inputs[:, mark].argmin()], inputs[inputs[:, mark].argmax()]
    low_out, high_out = answers[answers[:, mark].argmin()], answers[answers[:, mark].argmax()]
    once_more = _next_symbol(
        decoder, _stream(low_in, copies, between, low_out, copies - 1), copies + 1
    )
    moves_on = _next_symbol(
        decoder, _stream(high_in, copies, between, high_out, copies), copies + 1
    )
    return once_more == 0 and moves_on == 1


def _rows_after_first_block(decoder: Decoder, q: int) -> tuple[Tensor, Tensor, Tensor]:
    """Rows of the input's copies, of the larger symbol and ⊥, and of the answer's copies."""
    tokens = torch.zeros(1, 2 * SHORT + 2, dtype=torch.long)
    tokens[0, SHORT], tokens[0, SHORT + 1] = 1, q
    rows = decoder.trace(tokens, "sort", SHORT + 1)["blocks.0.after_mlp"][0]
    # Row 0 sees a single key, so that its logits are no test of anything.
    return rows[1:SHORT], rows[SHORT : SHORT + 2], rows[SHORT + 2 :]


def _stream(each_in: Tensor, copies: int, between: Tensor, each_out: Tensor, done: int) -> Tensor:
    return torch.cat([each_in.expand(copies, -1), between, each_out.expand(done, -1)])


def _next_symbol(decoder: Decoder, x: Tensor, inputs: int) -> int:
    count = len(x)
    places = Places.of_rectangle(
        torch.tensor([inputs]), count + 1, 0, count, decoder.config.positions
    )
    attend = attend_flat((Group(1, count, 1),), tail=True)
    last = decoder.blocks[1](x, places, attend, torch.tensor([count - 1]))
    return int(decoder.head("sort")(decoder.final_norm(last)).argmax())
