// The version of the book becomes a list of links where several lie side by side: to the same page, if the other version has it.
document.addEventListener("DOMContentLoaded", () => {
  const { here, all } = window.bookVersions, place = document.querySelector(".versions");
  if (!place || all.length < 2) return;
  const root = new URL(document.documentElement.dataset.content_root, location.href);
  const page = location.href.split(/[?#]/)[0].slice(root.href.length);
  const list = document.createElement("details"), others = document.createElement("ul");
  list.innerHTML = "<summary></summary>";
  list.firstChild.textContent = here === "dev" ? "Version in development" : `Version ${place.dataset.release}`;
  for (const { name, front, pages } of all) {
    const link = document.createElement("a");
    link.textContent = name === "dev" ? "in development" : name;
    link.href = new URL(`../${name}/` + (pages.includes(page) ? page + location.hash : front), root);
    if (name === here) link.setAttribute("aria-current", "page");
    others.appendChild(document.createElement("li")).append(link);
  }
  list.append(others);
  place.replaceChildren(list);
});
