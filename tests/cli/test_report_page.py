"""`idumb report N --html FILE`: one page for a reviewer."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.support import browser
from tests.support.gitrepo import GitSandbox
from tests.support.plans import run
from tests.support.prepared import Prepared
from tests.support.project import Project, create, making, task

HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(2)> \x1b[2J"
AGENT = """\
n=$(cat $HOME/n 2>/dev/null || echo 0); n=$((n + 1)); echo $n > $HOME/n
case $n in
1) printf 'half' > app.py ;;
*) printf 'def done():\\n    return "</pre><script>alert(3)</script>"\\n' > app.py; echo stray > stray.txt ;;
esac
echo '<script>alert(4)</script>'
printf '%s' '{"model": "middle", "usage": {"cost_usd": 0.25, "tokens_in": 100, "tokens_out": 20}}' > $IDUMB_STATE_FILE
"""


def reviewed(repo: GitSandbox) -> Project:
    """T1-01 fails once, then strays, and a person keeps that; a person judges a criterion of T1-02."""
    project = create(repo)
    agent = project.folder.parent / "agent.sh"
    agent.write_text(AGENT, encoding="utf-8")
    project.configure(f"bindings:\n  coder: {{adapter: command, argv: [sh, {json.dumps(str(agent))}]}}\n")
    built = task(
        "T1-01",
        files="create `app.py`",
        check="grep -q done app.py",
        fields="- **Builder:** coder\n",
    ).replace("\n\n", f"\n\n[click](javascript:alert(5)) {HOSTILE} [click](javascript:alert(5))\n\n", 1)
    judged = making("T1-02", "b.txt", after="T1-01", criteria="  - [ ] it reads well — human\n")
    project.plan([built, judged])
    assert run(project, "--no-verify").code == 5
    assert project.quick("decide", "T1-01.deviation.2", "keep", "--guidance", "it belongs").code == 0
    assert project.quick("resume", "1", "--no-verify").code == 5
    return project


def page_of(project: Project, home: Path) -> Path:
    place = home / "page.html"
    answer = project.json("report", "1", "--html", str(place))
    assert (answer.code, answer.data["written"]) == (0, [str(place)])
    return place


def test_a_reader_of_the_page_learns_what_changed_why_it_failed_what_it_cost_and_who_decided(
    prepared: Prepared, home: Path
) -> None:
    text = page_of(prepared.get(reviewed), home).read_text(encoding="utf-8")
    card = text[text.index('id="T1-01"') : text.index('id="T1-02"')]
    assert "AC-1 failed" in card
    assert "grep -q done app.py" in card
    assert re.search(r'class="add">\+<span class="k">def</span>', card), card
    assert "stray.txt" in card
    assert "$0.50" in card
    assert "</a>  changed files it does not declare: stray.txt: keep" in text
    assert "it belongs" in text
    unproven = text[text.index('id="unproven"') : text.index('id="decided"')]
    assert "T1-02" in unproven
    assert "the phase was not verified" in unproven


def test_the_page_loads_nothing_and_shows_hostile_texts_as_text(prepared: Prepared, home: Path) -> None:
    text = page_of(prepared.get(reviewed), home).read_text(encoding="utf-8")
    assert text.count("<script>") == text.count("</script>") == 1
    assert "\x1b" not in text
    assert not re.search(r"<(img|link|iframe|object)\b|https?://|@import|url\(|href=.javascript:", text)
    for number in (1, 3, 4):
        assert f"&lt;script&gt;alert({number})&lt;/script&gt;" in text


def test_open_without_a_page_and_a_folder_instead_of_a_file_are_refused(project: Project) -> None:
    assert project.json("report", "1", "--open").error["code"] == "usage"
    assert project.json("report", "1", "--html", ".").error["code"] == "file.exists"


def test_a_page_replaces_a_page_and_no_other_file(prepared: Prepared) -> None:
    project = prepared.get(reviewed)
    for _ in range(2):
        assert project.json("report", "1", "--html", "page.html").code == 0
    (project.folder / "notes.html").write_text("mine\n")
    assert project.json("report", "1", "--html", "notes.html").error["code"] == "file.exists"
    assert project.read("notes.html") == "mine\n"


@pytest.mark.nightly
@pytest.mark.skipif(browser.PROGRAM is None, reason="Chromium is not installed")
def test_the_page_works_in_a_browser_at_three_widths_by_keyboard_and_without_errors(
    prepared: Prepared, home: Path, tmp_path: Path
) -> None:
    place = page_of(prepared.get(reviewed), home)
    shown = "[...document.querySelectorAll('.card')].filter(card => !card.hidden).map(card => card.id).join()"
    with browser.started(tmp_path / "profile") as chromium:
        for width in (380, 800, 1400):
            chromium.open(place, width=width)
            assert chromium.value("document.documentElement.scrollWidth") <= width
        assert chromium.value(shown) == "T1-01,T1-02"
        chromium.press("r")
        assert chromium.value(shown) == "T1-01"
        chromium.press("Escape", "/", "b", ".", "t")
        assert chromium.value(shown) == "T1-02"
        chromium.press("Escape", "j", "j")
        assert chromium.value("document.activeElement.parentElement.id") == "T1-02"
        chromium.press("e")
        assert chromium.value("document.querySelectorAll('.card[open]').length") == 2
        assert chromium.value("document.images.length + document.scripts.length") == 1
        assert chromium.errors == []
