"""The page in a real browser: typed, stepped through, hovered, changed, compared, saved."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any
from urllib.parse import quote_plus

import numpy as np
import pytest
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from taskhint.cli import main
from taskhint.explore.saved import parse_edit
from taskhint.model.edits import Edit, KnockOutHead, ReplaceStream, ScaleTemperature
from taskhint.system.settings import to_json
from tests.explore.page import (
    Models,
    Page,
    Server,
    Wanted,
    browsing,
    wanted,
)

# Five inputs for each of the models: built, sort-best, increment-best, plug-in.
INPUTS = (
    ("5 17 3 17", "9", "2 2 2 2 1 1", "20 1 20 1 19", "4 3 2 1 8 8 8 7 11 13"),
    ("5 17 43 17", "100 1", "7 7 7 8 8 9", "50", "33 99 2 78 41 41 6 18 90 12"),
    ("1 2 9", "9 9 9", "5", "4 0 0 0 7", "9 0 9 9 9 9"),
    ("1 2 3", "12 12", "7", "6 5 4 3 2 1", "3 1 4 1 5 9 2 6"),
)


def number(text: str) -> float:
    return float(text)


def assert_shows(page: Page, side: int, right: Wanted) -> None:
    """Every number in the tables of a side is Python's, to 1e-5."""
    attention, logits, streams = page.tables(side)
    depth, heads, keys = right.weights.shape
    weights = right.weights.reshape(depth * heads, keys).T
    products = right.attention_logits.reshape(depth * heads, keys).T
    pairs = np.stack([weights, products], axis=2).reshape(keys, -1)
    assert_close([row[2:] for row in attention[1:]], pairs)
    shares = np.exp(right.logits - right.logits.max())
    shares = shares / shares.sum()
    assert_close([row[1:] for row in logits[1:]], np.stack([right.logits, shares], axis=1))
    both = np.stack([right.encoder, right.decoder], axis=1).reshape(-1, right.encoder.shape[1]).T
    assert_close([row[1:] for row in streams[1:]], both)


def assert_close(shown: list[list[str]], right: Any) -> None:
    found = np.array([[number(cell) for cell in row] for row in shown])
    assert found.shape == right.shape
    assert np.allclose(found, right, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("model", [0, 1, 2, 3])
def test_every_number_on_the_page_is_that_of_the_trace(
    browser: Page, server: Server, models: Models, model: int
) -> None:
    for text in INPUTS[model]:
        symbols = text.split()
        browser.open(server.address, f"#input={quote_plus(text)}&a={model}")
        for position in {len(symbols), 2 * len(symbols) - 1}:
            browser.run("document.activeElement.blur()")
            slide = "const s = document.getElementById('slider'); s.value = arguments[0];"
            browser.run(f"{slide} s.dispatchEvent(new Event('input'))", position)
            browser.at(position)
            right = wanted(models.runs[model], symbols, position)
            assert_shows(browser, 0, right)
            assert f"says {right.said} with" in browser.text(".verdict")


def test_typing_an_input_and_stepping_through_the_answer(page: Page, models: Models) -> None:
    box = page.chrome.find_element(By.ID, "input")
    box.clear()
    box.send_keys("8, 3 8 1")
    before = page.run("return document.body.dataset.ready")
    box.send_keys(Keys.ENTER)
    page.wait("return document.body.dataset.ready !== arguments[0]", before)
    page.at(4)  # ⊥, where the answer begins
    cells = page.run(
        "return [...document.querySelectorAll('#sequence b')].map((b) => b.textContent)"
    )
    assert cells == ["8", "3", "8", "1", "⊥", "1", "3", "8"]
    said = page.run(
        "return [...document.querySelectorAll('#sequence i')].map((b) => b.textContent)"
    )
    assert said == ["", "", "", "", "✓1", "✓3", "✓8", "✓8"]
    for position in (5, 6, 7):
        page.chrome.find_element(By.ID, "forward").click()
        page.at(position)
    page.chrome.find_element(By.ID, "back").click()
    page.at(6)
    page.chrome.find_elements(By.CSS_SELECTOR, "#sequence button")[5].click()
    page.at(5)
    right = wanted(models.runs[0], ["8", "3", "8", "1"], 5)
    assert_shows(page, 0, right)


def test_hovering_a_head_tells_key_symbol_weight_and_logit(page: Page, models: Models) -> None:
    page.run("document.getElementById('slider').focus()")
    page.chrome.find_element(By.ID, "forward").click()
    page.at(5)
    chart = page.chrome.find_elements(By.CSS_SELECTOR, "article .chart canvas")[3]
    page.run("arguments[0].scrollIntoView({block: 'center'})", chart)
    width = chart.size["width"]
    key = 2
    middle = (key + 0.5) / 6 * width - width / 2
    ActionChains(page.chrome).move_to_element_with_offset(chart, int(middle), 0).perform()
    told = "return arguments[0].parentNode.querySelector('output').textContent"
    text = page.wait(f"{told}.match(/^key.*/)?.[0]", chart)
    right = wanted(models.runs[0], ["5", "17", "3", "17"], 5)
    words = text.replace(",", "").split()
    assert words[:4] == ["key", "2:", "3", "weight"]
    assert math.isclose(float(words[4]), right.weights[1, 1, 2], abs_tol=1e-5)
    assert math.isclose(float(words[6]), right.attention_logits[1, 1, 2], rel_tol=1e-5)
    assert page.run("return arguments[0].getAttribute('aria-valuetext')", chart) == text


def add_edit(page: Page, kind: str, **fields: str) -> None:
    page.run("document.getElementById('intervene').open = true")
    set_field = """
    const field = document.getElementById(arguments[0]);
    field.value = arguments[1];
    field.dispatchEvent(new Event("change"));
    """
    page.run(set_field, "edit-kind", kind)
    for name, value in fields.items():
        page.run(set_field, f"edit-{name}", value)
    page.reload("document.querySelector('#edit-form button').click()")


@pytest.mark.parametrize(
    ("kind", "fields", "edit"),
    [
        ("knock-out-head", {"block": "1", "head": "0"}, KnockOutHead(1, 0)),
        ("knock-out-head", {"block": "0", "head": "1", "by": "mean"}, KnockOutHead(0, 1, "mean")),
        ("scale-temperature", {"block": "1", "factor": "0.25"}, ScaleTemperature(1, 0.25)),
        (
            "replace-stream",
            {"stream": "blocks.0.after_mlp", "other": "9 2", "source": "2"},
            ReplaceStream("blocks.0.after_mlp", 4, (8, 1, 20, 1), 2, 2),
        ),
    ],
)
def test_an_intervention_shows_both_runs_and_what_changed(
    page: Page, models: Models, kind: str, fields: dict[str, str], edit: Edit
) -> None:
    add_edit(page, kind, **fields)
    assert page.run("return document.querySelectorAll('article').length") == 2
    symbols = ["5", "17", "3", "17"]
    for position in (4, 6):
        slide = "const s = document.getElementById('slider'); s.value = arguments[0];"
        page.run(f"{slide} s.dispatchEvent(new Event('input'))", position)
        page.at(position)
        assert_shows(page, 0, wanted(models.runs[0], symbols, position))
        assert_shows(page, 1, wanted(models.runs[0], symbols, position, [edit]))
    said = [wanted(models.runs[0], symbols, p).said for p in range(4, 8)]
    new = [wanted(models.runs[0], symbols, p, [edit]).said for p in range(4, 8)]
    differ = [4 + i for i in range(4) if said[i] != new[i]]
    marked = page.run("return document.querySelectorAll('#sequence .changed').length")
    assert marked == len(differ)
    assert f"they differ at {len(differ)}" in page.text("#changed")
    page.run("document.querySelector('#edits button').focus()")
    page.reload("document.querySelector('#edits button').click()")
    assert page.run("return document.querySelectorAll('article').length") == 1
    assert page.run("return document.activeElement.textContent") == "Intervene"


def test_an_edit_of_a_users_own_kind_can_be_made_on_the_page(page: Page, models: Models) -> None:
    page.run("document.getElementById('intervene').open = true")
    kind = "const s = document.getElementById('edit-kind'); s.value = arguments[0];"
    page.run(f"{kind} s.dispatchEvent(new Event('change'))", "explored-knock-out-later")
    template = "return document.getElementById('edit-settings').value"
    assert page.run(template) == "block= head= start="
    add_edit(page, "explored-knock-out-later", settings="block=1 head=0 start=5")
    page.chrome.find_element(By.ID, "forward").click()
    page.at(5)
    edit = parse_edit("explored-knock-out-later block=1 head=0 start=5")
    assert_shows(page, 1, wanted(models.runs[0], ["5", "17", "3", "17"], 5, [edit]))


def test_an_edit_of_a_users_own_kind_is_shown_by_its_settings(
    page: Page, server: Server, models: Models, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, symbols = tmp_path / "own.html", ["5", "17", "3", "17"]
    command = ["explore", models.paths[0], "--import", str(models.plugin), "--save", str(path)]
    text = "explored-knock-out-later block=1 head=0 start=5"
    assert main([*command, "--input", " ".join(symbols), "--edit", text]) == 0
    assert ": 1 model, 1 input, " in capsys.readouterr().out
    edit = parse_edit(text)
    live = f"#input=5+17+3+17&a=0&b=0&at=4&edits={quote_plus(json.dumps([to_json(edit)]))}"
    for address, state in ((path.as_uri(), ""), (server.address, live)):
        page.open(address, state)
        page.at(4)
        said = page.text("#edits li")
        assert said == "explored-knock-out-later: block = 1, head = 0, start = 5✕"
        page.chrome.find_element(By.ID, "forward").click()
        page.at(5)
        assert_shows(page, 0, wanted(models.runs[0], symbols, 5))
        assert_shows(page, 1, wanted(models.runs[0], symbols, 5, [edit]))


def test_the_chart_of_a_knocked_out_head_says_so_and_the_map_names_its_axes(page: Page) -> None:
    add_edit(page, "knock-out-head", block="1", head="0", by="mean")
    titles = """
    const charts = document.querySelectorAll(`article:nth-child(${arguments[0]}) .charts .chart`);
    return [...charts].map((chart) => chart.querySelector("span").textContent);
    """
    plain = ["Block 0, head 0", "Block 0, head 1", "Block 1, head 0", "Block 1, head 1"]
    assert page.run(titles, 1) == plain
    changed = [*plain[:2], "Block 1, head 0 · output set to its mean", plain[3]]
    assert page.run(titles, 2) == changed
    assert (page.text(".map .across"), page.text(".map .down")) == ("keys →", "queries ↓")
    page.reload("document.querySelector('#edits button').click()")
    assert page.run(titles, 1) == plain


def test_knocking_out_counting_breaks_the_repeat_and_one_press_finds_it(
    page: Page, server: Server
) -> None:
    page.open(server.address, "#input=5+5+17+3&a=0")
    add_edit(page, "knock-out-head", block="1", head="0")
    page.chrome.find_element(By.ID, "error").click()
    page.at(6)  # the first 5: another one should follow
    assert "says 17" in page.text("article:last-child .verdict")
    assert "✗ wrong, right is 5" in page.text("article:last-child .verdict")


def test_two_models_side_by_side_and_the_state_in_the_address(page: Page, models: Models) -> None:
    page.reload(
        "const s = document.getElementById('model-b'); s.value = '1';"
        "s.dispatchEvent(new Event('change'))"
    )
    page.chrome.find_element(By.ID, "forward").click()
    page.at(5)
    symbols = ["5", "17", "3", "17"]
    for side in (0, 1):
        assert_shows(page, side, wanted(models.runs[side], symbols, 5))
    page.wait("return location.hash.includes('&at=5&')")
    address = page.chrome.current_url
    shown = page.text("#where")
    page.open(address)
    page.at(5)
    assert page.text("#where") == shown
    assert page.run("return document.querySelectorAll('article').length") == 2


def test_five_hundred_symbols_can_be_stepped_through(browser: Page, server: Server) -> None:
    text = "+".join(str(1 + i * 37 % 100) for i in range(500))
    browser.open(server.address, f"#input={text}&a=1")
    browser.at(500)
    for position in (501, 502, 503):
        browser.run("document.getElementById('forward').click()")
        browser.at(position)
    assert len(browser.tables(0)[0]) == 1 + 504
    shape = browser.run("return document.querySelectorAll('#sequence button').length")
    assert shape == 1000
    browser.check_quiet()


def test_the_saved_page_shows_the_same_from_disk(
    models: Models, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "page.html"
    command = ["explore", *models.paths[:2], "--save", str(path)]
    inputs = ["--input", "5 17 3 17", "--input", "9 2"]
    assert main([*command, *inputs, "--edit", "scale-temperature block=1 factor=0.00001"]) == 0
    assert "2 models, 2 inputs" in capsys.readouterr().out
    with browsing() as page:
        page.open(path.as_uri())
        symbols = ["5", "17", "3", "17"]
        for position in (4, 5):
            page.at(position)
            assert_shows(page, 0, wanted(models.runs[0], symbols, position))
            edit = ScaleTemperature(1, 1e-5)
            assert_shows(page, 1, wanted(models.runs[0], symbols, position, [edit]))
            page.run("document.getElementById('forward').click()")
        page.reload(
            "const s = document.getElementById('saved-input'); s.value = '9 2';"
            "s.dispatchEvent(new Event('change'))"
        )
        page.at(2)
        assert_shows(page, 0, wanted(models.runs[0], ["9", "2"], 2))
        page.open(path.as_uri(), "#input=5+17+3+17&a=1&at=6&map=decoder:blocks.1.after_mlp")
        assert_shows(page, 0, wanted(models.runs[1], symbols, 6))
        assert not page.text("#message")
