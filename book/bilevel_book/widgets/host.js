// Plays on a page a widget that a notebook has stored: a module needs get, set, on, off and save_changes of its model.
function playWidget({ source, css, traits }) {
  const host = document.currentScript.parentElement, heard = {};
  const model = {
    get: (name) => traits[name],
    set(name, value) {
      if (traits[name] === value) return;
      traits[name] = value;
      for (const hear of heard[`change:${name}`] || []) hear();
    },
    save_changes() {},
    on: (event, hear) => (heard[event] = [...(heard[event] || []), hear]),
    off: (event, hear) => (heard[event] = (heard[event] || []).filter((one) => one !== hear)),
  };
  if (!document.getElementById("live-css")) {
    document.head.append(Object.assign(document.createElement("style"), { id: "live-css", textContent: css }));
  }
  import(URL.createObjectURL(new Blob([source], { type: "text/javascript" }))).then((module) => {
    const el = document.createElement("div");
    host.append(el);
    module.default.render({ model, el });
    host.querySelector("img").remove(); // what is seen is printed
  });
}
