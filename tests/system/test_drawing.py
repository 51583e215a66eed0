"""Figures on pages: one picture a panel, which a narrow screen puts one under another."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree

from taskhint.report.style import STYLE
from taskhint.system.drawing import as_panels, legend_below, mark_training, new_figure, tidy


def test_every_panel_and_the_legend_are_pictures_of_their_own() -> None:
    figure = new_figure(9, 3)
    panels = figure.subplots(1, 3, sharey=True)
    for number, panel in enumerate(panels[:2]):
        panel.plot([0, 40], [100, 0], label=f"line {number}")
        tidy(panel, f"panel {number}", "input length", "accuracy")
        mark_training(panel, 20)
    panels[2].set_axis_off()
    legend_below(figure, panels, 2)
    page = as_panels(figure, 'by "length"')
    assert 'aria-label="by &quot;length&quot;"' in page
    pictures = re.findall(r"<svg.*?</svg>", page, re.DOTALL)
    texts = [
        [one.text for one in ElementTree.fromstring(picture).iter() if one.tag.endswith("text")]
        for picture in pictures
    ]
    assert len(pictures) == 3
    assert "panel 0" in texts[0] and "panel 1" not in texts[0]
    assert "panel 1" in texts[1] and "100" in texts[1]  # with the numbers of its own axis
    assert texts[2] == ["line 0", "line 1"]
    widths = [float(re.search(r'width="([\d.]+)pt"', one)[1]) for one in pictures]  # type: ignore[index]
    assert max(widths) < 300  # fits 400 px


def test_pages_heed_dark_mode_and_pin_the_first_column() -> None:
    assert "prefers-color-scheme: dark" in STYLE and "position: sticky" in STYLE
