"""The page in a real browser: comfortable by keyboard, on small screens, and after mistakes."""

from __future__ import annotations

from itertools import pairwise

import pytest
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from tests.explore.page import Models, Page, Server, browsing


def test_a_wrong_symbol_is_refused_in_words(page: Page) -> None:
    box = page.chrome.find_element(By.ID, "input")
    box.clear()
    box.send_keys("5 21", Keys.ENTER)
    page.wait_text("#message", "symbol 21 is out of range")
    page.chrome.get_log("browser")  # type: ignore[no-untyped-call]  # the browser notes a 400
    assert page.run("return document.getElementById('input').value") == "5 21"  # to be mended
    page.chrome.find_element(By.ID, "forward").click()  # all else is as it was
    page.at(5)
    assert page.run("return document.getElementById('message').hidden")
    assert "input=5+17+3+17&" in page.run("return location.hash")


def test_an_address_with_a_wrong_input_opens_with_the_example(
    page: Page, server: Server, models: Models
) -> None:
    page.open(server.address, "#input=5+21&a=0")
    assert "symbol 21 is out of range" in page.text("#message")
    page.chrome.get_log("browser")  # type: ignore[no-untyped-call]
    assert page.run("return document.querySelectorAll('article').length") == 1
    task = models.runs[0].task
    example = page.run("return [...document.querySelectorAll('#sequence .input')].length")
    assert example == task.worked_example().index(task.vocab.delimiter)


def test_a_model_of_another_task_brings_an_input_of_its_own(page: Page, models: Models) -> None:
    choose = "const s = document.getElementById('model-a'); s.value = arguments[0];"
    page.reload(f"{choose} s.dispatchEvent(new Event('change'))", "2")
    assert page.run("return document.getElementById('message').hidden")
    task = models.runs[2].task
    example = " ".join(task.vocab.words(task.worked_example()[:-1]))
    assert page.run("return document.getElementById('input').value") == example
    page.wait_text("#about", "increment")


def test_letters_work_while_the_slider_has_the_focus(page: Page) -> None:
    page.run("document.getElementById('slider').focus()")
    ActionChains(page.chrome).send_keys(Keys.END).perform()
    page.at(7)
    ActionChains(page.chrome).send_keys("b").perform()
    page.at(4)


def test_a_held_key_changes_the_address_rarely_and_in_the_end(page: Page) -> None:
    """Safari raises an error after 100 changes in 30 seconds."""
    page.run(
        """
        const before = history.replaceState.bind(history);
        window.changes = 0;
        history.replaceState = (...words) => { window.changes += 1; before(...words); };
        document.activeElement.blur();
        """
    )
    press = "document.body.dispatchEvent(new KeyboardEvent('keydown', {key, bubbles: true}))"
    for _ in range(12):
        for key, at in (("End", 7), ("Home", 0)):
            page.run(f"const key = '{key}'; {press}")
            page.at(at)
    page.wait("return location.hash.includes('&at=0&')")
    seconds = page.run("return performance.now()") / 1000
    assert page.run("return window.changes") <= 1 + seconds / 0.4


def test_only_the_position_is_read_aloud_at_a_step(page: Page) -> None:
    loud = "return [...document.querySelectorAll(arguments[0])].map((e) => e.ariaLive)"
    assert page.run(loud, "#where") == ["polite"]
    assert set(page.run(loud, "output")) == {"off"}


def test_the_heat_map_tells_the_cell_under_the_pointer(page: Page) -> None:
    canvas = page.chrome.find_element(By.CSS_SELECTOR, ".map > canvas")
    page.run("arguments[0].scrollIntoView({block: 'center'})", canvas)
    left, top = 30, 15  # for the labels
    each = (canvas.size["width"] - left) / 8
    for row, column, text in ((5, 2, "position 5 (3), key 2 (3)"), (7, 0, "position 7 (17), key")):
        across = left + (column + 0.5) * each - canvas.size["width"] / 2
        down = top + (row + 0.5) * (canvas.size["height"] - top) / 8 - canvas.size["height"] / 2
        pointer = ActionChains(page.chrome)
        pointer.move_to_element_with_offset(canvas, int(across), int(down)).perform()
        page.wait_text(".map output", text)


def test_labels_along_an_axis_never_cover_each_other(page: Page) -> None:
    script = """
    const [labels, room, size, name, done] = arguments;
    import("./ticks.js").then((module) => done(module[name](labels, room, size)));
    """
    symbols = [*map(str, range(1, 101)), "⊥", "PAD"]
    read = [*map(str, range(60, 0, -1)), "⊥", *map(str, range(1, 60))]
    for labels, name in ((symbols, "ticks"), (read, "places")):
        for room in (30, 17, 6, 2.3, 0.4):
            found = page.chrome.execute_async_script(script, labels, room, 20, name)
            places = sorted(i for i, _ in found)
            assert all((j - i) * room >= 20 for i, j in pairwise(places))
            assert len(places) >= min(len(labels), len(labels) * room / 60)
            for i, text in found:
                right = labels[i] if name == "ticks" or room >= 20 or text == "⊥" else str(i)
                assert text == right
    assert [60, "⊥"] in page.chrome.execute_async_script(script, read, 2.3, 20, "places")


def test_the_keyboard_alone_is_enough(page: Page) -> None:
    keys = ActionChains(page.chrome)

    def press(*names: str) -> None:
        keys.send_keys(*names).perform()
        keys.reset_actions()

    page.run("document.activeElement.blur()")
    press("b")
    page.at(4)
    press(Keys.ARROW_RIGHT)
    page.at(5)
    press(Keys.END)
    page.at(7)
    press(Keys.HOME)
    page.at(0)
    press("i")
    assert page.run("return document.activeElement.id") == "input"
    before = page.run("return document.body.dataset.ready")
    keys.key_down(Keys.CONTROL).send_keys("a").key_up(Keys.CONTROL).perform()
    keys.reset_actions()
    press("7 2 9", Keys.ENTER)
    page.wait("return document.body.dataset.ready !== arguments[0]", before)
    page.wait_text("#where", "Position 3 of 5")
    reached = set()
    for _ in range(60):
        press(Keys.TAB)
        script = """
        const e = document.activeElement;
        const name = e.getAttribute("aria-label") || e.id || e.textContent;
        return [name, e.matches(":focus-visible")];
        """
        name, visible = page.run(script)
        if page.run("return document.activeElement === document.body"):
            break  # once around
        reached.add(name)
        assert visible, name
        if name == "Block 0, head 1":
            press(Keys.ARROW_RIGHT, Keys.ARROW_RIGHT)
            value = page.run("return document.activeElement.getAttribute('aria-valuetext')")
            assert value.startswith("key 1: 2, weight ")
    wanted_names = {"Position", "error", "Block 0, head 1", "Logits", "Embedding, decoder basis"}
    assert wanted_names <= reached, reached


def test_every_control_has_a_name_for_screen_readers(page: Page) -> None:
    script = """
    const named = (e) => e.labels?.length || e.getAttribute("aria-label") || e.textContent.trim();
    const all = document.querySelectorAll("input, select, button, canvas:not([aria-hidden])");
    return [...all].filter((e) => !named(e)).map((e) => e.outerHTML);
    """
    assert page.run(script) == []
    assert page.run("return document.documentElement.lang") == "en"


def test_only_models_of_one_task_stand_side_by_side(page: Page, server: Server) -> None:
    script = "return [...document.getElementById('model-b').options].map((o) => o.textContent)"
    assert page.run(script) == ["nothing", "built", "sort-best"]
    page.open(server.address, "#input=1+2+9&a=2&b=0")
    assert page.run(script) == ["nothing", "increment-best"]
    assert page.run("return document.querySelectorAll('article').length") == 1
    drawn = "return [...document.getElementById('distribution').options].map((o) => o.value)"
    assert page.run(drawn) == ["uniform", "nines"]


def test_a_random_input_and_a_drawn_one(page: Page) -> None:
    page.run("document.getElementById('length').value = 12")
    page.reload("document.querySelector('#random-form button').click()")
    assert len(page.run("return document.getElementById('input').value").split()) == 12
    page.run("document.getElementById('drawing').open = true")
    canvas = page.chrome.find_element(By.ID, "draw")
    page.run("arguments[0].scrollIntoView({block: 'center'})", canvas)
    half = canvas.size["width"] // 2 - 3
    before = page.run("return document.body.dataset.ready")
    drag = ActionChains(page.chrome).move_to_element_with_offset(canvas, -half, 70)
    drag.click_and_hold().move_by_offset(2 * half, -140).release().perform()
    page.wait("return document.body.dataset.ready !== arguments[0]", before)
    values = [int(v) for v in page.run("return document.getElementById('input').value").split()]
    assert len(values) == 12
    assert values == sorted(values)
    assert values[0] <= 2
    assert values[-1] >= 19


@pytest.mark.parametrize("width", [400, 1600])
@pytest.mark.parametrize("dark", [False, True])
def test_narrow_and_wide_light_and_dark(server: Server, width: int, dark: bool) -> None:
    with browsing(width, dark) as page:
        page.open(server.address, "#input=5+17+3+17&a=0&b=1&at=5")
        assert page.run("return document.documentElement.scrollWidth") <= width
        tops = page.run("return [...document.querySelectorAll('article')].map((a) => a.offsetTop)")
        assert (tops[0] == tops[1]) == (width == 1600)
        script = r"return getComputedStyle(document.body)[arguments[0]].match(/\d+/g).map(Number)"
        page.run(
            """
            for (const box of document.querySelectorAll("details")) box.open = true;
            document.getElementById("help-button").click();
            const kind = document.getElementById("edit-kind");
            kind.value = "replace-stream";
            kind.dispatchEvent(new Event("change"));
            document.querySelector("#model-b option").textContent = "x".repeat(80);
            document.querySelector("article h2").textContent = "x".repeat(80);
            """
        )
        assert page.run("return document.documentElement.scrollWidth") <= width
        page_colour, ink = page.run(script, "backgroundColor"), page.run(script, "color")
        assert (sum(page_colour) < sum(ink)) == dark
        assert contrast(page_colour, ink) > 7
        page.run("document.getElementById('theme').click()")
        assert (sum(page.run(script, "backgroundColor")) < sum(page_colour)) != dark


def contrast(one: list[float], other: list[float]) -> float:
    """The contrast ratio of WCAG 2."""

    def luminance(colour: list[float]) -> float:
        parts = [c / 255 for c in colour[:3]]
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
        return sum(w * c for w, c in zip((0.2126, 0.7152, 0.0722), linear, strict=True))

    low, high = sorted([luminance(one), luminance(other)])
    return (high + 0.05) / (low + 0.05)
