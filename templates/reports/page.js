"use strict";
const cards = [...document.querySelectorAll(".card")];
const search = document.getElementById("search");
const buttons = [...document.querySelectorAll("[data-filter]")];
const none = document.getElementById("none");
let filter = "all", at = -1;

function show() {
  const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
  let shown = 0;
  for (const card of cards) {
    const fits = (filter === "all" || card.dataset.groups.split(",").includes(filter))
      && words.every(word => card.dataset.text.includes(word));
    card.hidden = !fits;
    shown += fits;
  }
  none.hidden = shown > 0;
  for (const button of buttons) button.setAttribute("aria-pressed", button.dataset.filter === filter);
}

function choose(name) { filter = name; at = -1; show(); }

function step(by) {
  const shown = cards.filter(card => !card.hidden);
  if (!shown.length) return;
  at = Math.min(Math.max(at + by, 0), shown.length - 1);
  shown[at].querySelector("summary").focus();
  shown[at].scrollIntoView({block: "nearest"});
}

function open(id) {
  const card = document.getElementById(id);
  if (!card || !card.classList.contains("card")) return;
  if (card.hidden) { search.value = ""; choose("all"); }
  card.open = true;
  at = cards.filter(one => !one.hidden).indexOf(card);
}

search.addEventListener("input", show);
for (const button of buttons) button.addEventListener("click", () => choose(button.dataset.filter));
addEventListener("hashchange", () => open(decodeURIComponent(location.hash.slice(1))));
for (const link of document.querySelectorAll('a[href^="#"]'))
  link.addEventListener("click", () => open(decodeURIComponent(link.hash.slice(1))));
addEventListener("beforeprint", () => { for (const card of cards) card.open = true; });
addEventListener("keydown", event => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "Escape") { search.value = ""; search.blur(); choose("all"); return; }
  if (event.target === search) return;
  const button = buttons.find(one => one.dataset.key === event.key);
  if (button) choose(button.dataset.filter);
  else if (event.key === "/") search.focus();
  else if (event.key === "j") step(1);
  else if (event.key === "k") step(-1);
  else if (event.key === "e") { const all = cards.some(c => !c.hidden && !c.open); for (const c of cards) if (!c.hidden) c.open = all; }
  else return;
  event.preventDefault();
});
if (location.hash) open(decodeURIComponent(location.hash.slice(1)));
