"""Figures on pages: one picture a panel, which a narrow screen puts one under another."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from typing import Any

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


def texts_of(picture: str) -> list[str | None]:
    return [one.text for one in ElementTree.fromstring(picture).iter() if one.tag.endswith("text")]


def test_panels_keep_the_columns_of_their_figure_and_the_words_that_they_share() -> None:
    figure = new_figure(14, 6)
    panels = figure.subplots(2, 4, sharex=True, sharey=True)
    for number, panel in enumerate(panels.flatten()):
        panel.plot([3, 9], [1, 5])
        tidy(panel, f"panel {number}")
    for row in panels:
        row[0].set_ylabel("dot product")
    for panel in panels[-1]:
        panel.set_xlabel("symbol")
    figure.suptitle("all of <them>")
    page = as_panels(figure, "projections")
    assert "<p>all of &lt;them&gt;</p>" in page
    assert "--wide: 4; --half: 2" in page
    pictures = re.findall(r"<svg.*?</svg>", page, re.DOTALL)
    assert len(pictures) == 8
    for number, picture in enumerate(pictures):
        assert {f"panel {number}", "dot product", "symbol", "4", "5"} <= set(texts_of(picture))
    boxes = {tuple(re.findall(r'(?:width|height)="([\d.]+)pt"', one)[:2]) for one in pictures}
    assert len({round(float(size)) for box in boxes for size in box}) <= 2  # all alike


def test_a_panel_that_is_not_used_is_no_picture_and_a_colour_bar_stays_with_its_panel() -> None:
    figure = new_figure(9, 3)
    panels = figure.subplots(1, 3)
    image = panels[0].imshow([[0, 1]], aspect="auto")
    figure.colorbar(image, ax=panels[0], label="beside")
    panels[2].set_visible(False)
    pictures = re.findall(r"<svg.*?</svg>", as_panels(figure, "two"), re.DOTALL)
    assert ["beside" in texts_of(one) for one in pictures] == [True, False]
    assert not panels[2].get_visible()


def test_lengths_are_whole_and_what_was_trained_is_said_clear_of_the_lines() -> None:
    figure = new_figure(5, 4)
    panel = figure.subplots()
    panel.plot([1, 4], [100, 0])
    tidy(panel, "title", "input length")
    mark_training(panel, 2)
    figure.draw_without_rendering()
    assert all(float(tick).is_integer() for tick in panel.get_xticks())
    (words,) = panel.texts
    assert words.get_text() == "shaded: trained, up to 2"
    assert words.get_window_extent().y0 >= panel.get_window_extent().y1
    assert words.get_window_extent().y1 <= panel.title.get_window_extent().y0


def test_pages_heed_dark_mode_and_pin_the_first_column() -> None:
    assert "prefers-color-scheme: dark" in STYLE and "position: sticky" in STYLE


def test_labels_above_a_panel_are_not_drawn_below_it_too() -> None:
    figure = new_figure(4, 3)
    axes: Any = figure.subplots()
    axes.set_xticks([0, 1], ["first", "second"])
    axes.xaxis.tick_top()
    picture = re.findall(r"<svg.*?</svg>", as_panels(figure, "above"), re.DOTALL)[0]
    texts = [one.text for one in ElementTree.fromstring(picture).iter()]
    assert texts.count("first") == 1
