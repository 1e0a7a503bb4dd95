// A filter over the cards of a ledger: by verdict, section and chapter. Without scripts all cards are there.
(() => {
  const cards = [...document.querySelectorAll(".ledger-card")];
  const first = cards[0]?.closest("section");
  if (!first) return;
  const words = (prefix) => [...new Set(cards.flatMap((card) => [...card.classList].filter((name) => name.startsWith(prefix))))];
  const titles = [...new Set(cards.map((card) => card.closest("section")))];
  const choices = {
    verdict: words("is-").map((name) => [name, name.slice(3).replaceAll("-", " ")]),
    section: titles.map((section) => [section.id, section.querySelector("h2").firstChild.textContent]),
    chapter: words("in-chapter-").map((name) => [name, name.slice(11)]).sort((a, b) => a[1] - b[1]),
  };

  const form = document.createElement("form");
  form.className = "ledger-filter";
  form.setAttribute("aria-label", "Filter the cards");
  for (const [name, options] of Object.entries(choices)) {
    const label = form.appendChild(document.createElement("label"));
    label.append(name + " ");
    const select = label.appendChild(document.createElement("select"));
    select.name = name;
    select.append(new Option("all", ""), ...options.map(([value, text]) => new Option(text, value)));
  }
  const count = form.appendChild(document.createElement("output"));
  first.before(form);

  const filter = () => {
    const { verdict, section, chapter } = Object.fromEntries(new FormData(form));
    for (const card of cards) {
      const shown = [verdict, chapter].every((name) => !name || card.classList.contains(name));
      card.hidden = !shown || (section && card.closest("section").id !== section);
    }
    for (const title of titles) title.hidden = !title.querySelector(".ledger-card:not([hidden])");
    const left = cards.filter((card) => !card.hidden).length;
    count.value = left === cards.length ? `${left} cards` : `${left} of ${cards.length} cards`;
  };
  form.addEventListener("change", filter);
  // A link to a claim whose card is filtered away shows all cards again; also the second time, when the address stays.
  const show = () => {
    const claim = document.getElementById(location.hash.slice(1));
    if (!claim?.closest("[hidden]")) return;
    form.reset();
    filter();
    claim.scrollIntoView();
  };
  addEventListener("hashchange", show);
  addEventListener("click", (event) => {
    if (event.target.closest("a")?.hash === location.hash) show();
  });
  filter();
})();
