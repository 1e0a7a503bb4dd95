// Stored pictures, one for each place of the dials, for what only Python can compute. A kernel that answers also draws
// the places in between: `asked` is a place, `answer` its picture and words.

import { live } from "./stage.js";

const PATIENCE = 4000; // milliseconds: a kernel that does not answer is gone

export default live("frames", (stage) => {
  const { model, dials } = stage, made = model.get("made"), every = dials.map((dial) => dial.step);
  const picture = stage.panels.appendChild(Object.assign(document.createElement("img"), { className: "live-frame" }));
  for (const dial of dials) stage.play(dial.name, dial.label.split(",")[0], 0.4 * (dial.max / dial.step + 1));
  let seen = { at: dials.map((dial) => dial.start), src: made.start, alt: model.get("alt"), title: made.title };
  let waiting = null, wanted = null;

  /** The stored picture of a place, if there is one; frames hold what differs from the first. */
  function stored(at) {
    if (!made.frames || at.some((place, i) => place % every[i])) return null;
    const k = at.reduce((sum, place, i) => sum * (dials[i].max / every[i] + 1) + place / every[i], 0);
    return { at, src: made.frames[k], alt: made.alts[k], title: made.titles[k] };
  }

  function ask(at) {
    wanted = at;
    if (waiting) return; // one question at a time; of those that wait only the last counts
    waiting = setTimeout(() => alive(false), PATIENCE);
    model.set("asked", wanted);
    model.save_changes();
  }

  /** With a kernel the dials go through all values, without it through the stored ones. */
  function alive(yes) {
    clearTimeout(waiting);
    waiting = null;
    stage.say(yes ? "Your kernel draws what is not stored." : made.frames ? "" : "A still picture: run this cell, and its dials move.");
    dials.forEach((dial, i) => (stage.controls.querySelector(`[name="${dial.name}"]`).step = dial.step = yes ? 1 : every[i]));
    stage.update();
  }

  function answered() {
    const answer = model.get("answer");
    if (answer.problem) stage.say(answer.problem);
    else seen = answer;
    alive(true);
    if (answer.problem) stage.say(answer.problem);
    if (String(wanted) !== String(answer.at)) ask(wanted);
  }
  model.on("change:answer", answered);
  stage.leave = () => model.off("change:answer", answered);
  if (model.send) ask(seen.at); // a page has nobody to ask

  return (s) => {
    const at = dials.map((dial) => s[dial.name]), found = stored(at);
    if (found) seen = found;
    else if (String(at) !== String(seen.at) && String(at) !== String(wanted)) ask(at);
    picture.src = seen.src;
    picture.alt = seen.alt;
    picture.style.backgroundImage = `url(${made.start})`;
    model.set("path", { at: seen.at });
    return seen.title;
  };
});
