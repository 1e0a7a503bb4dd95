// Chapter 6: three estimates of a moving gradient. Its point z goes round a circle by steps of length s; a sample at z
// is z + tau M z + sigma n, with M and n random and the same for the point and the one before it.

import { Generator } from "./core.js";
import { live, range, show } from "./stage.js";

const SEEDS = 200, STEPS = 100, LOOKS = { plain: "quiet", average: "orange", recursive: "blue" };

export const circle = (s) => range(STEPS + 1).map((t) => [Math.cos(2 * t * Math.asin(s / 2)), Math.sin(2 * t * Math.asin(s / 2))]);

/** M, four numbers by rows, and n of every step, drawn as torch draws them. */
function noise(seed) {
  const generator = new Generator(seed);
  return range(STEPS + 1).map(() => ({ M: generator.normals(4, Math.SQRT1_2), n: generator.normals(2, Math.SQRT1_2) }));
}

/** The three estimates at every step. */
export function estimates(z, drawn, { eta, noise: sigma, tau }) {
  const sample = ([a, b], { M, n }) => [a + tau * (M[0] * a + M[1] * b) + sigma * n[0], b + tau * (M[2] * a + M[3] * b) + sigma * n[1]];
  const first = sample(z[0], drawn[0]), found = [{ plain: first, average: first, recursive: first }];
  for (let t = 1; t < z.length; t++) {
    const now = sample(z[t], drawn[t]), before = sample(z[t - 1], drawn[t]), past = found[t - 1];
    found.push({
      plain: now,
      average: now.map((d, i) => eta * d + (1 - eta) * past.average[i]),
      recursive: now.map((d, i) => d + (1 - eta) * (past.recursive[i] - before[i])),
    });
  }
  return found;
}

/** The root of the mean square of the errors at every step, over many seeds. */
function errors(z, many, s) {
  const sums = Object.fromEntries(Object.keys(LOOKS).map((name) => [name, new Float64Array(STEPS + 1)]));
  for (const drawn of many) {
    estimates(z, drawn, s).forEach((h, t) => {
      for (const name in sums) sums[name][t] += (h[name][0] - z[t][0]) ** 2 + (h[name][1] - z[t][1]) ** 2;
    });
  }
  for (const name in sums) sums[name] = [...sums[name]].map((sum) => Math.sqrt(sum / many.length));
  return sums;
}

export default live("momentum", (stage) => {
  const one = stage.panel({
    label: "One run of three estimates and the truth", x: [0, STEPS], y: [-2.4, 2.4], ylabel: "first coordinate", height: 230,
  });
  const all = stage.panel({
    label: "Root mean squared errors over 200 seeds", log: ["y"], x: [0, STEPS], y: [0.03, 4], xlabel: "t, the step", ylabel: "r.m.s. error", height: 225,
  });
  let drawn = null;

  return (s) => {
    if (!drawn || drawn.seed !== s.seed) drawn = { seed: s.seed, many: range(SEEDS).map((k) => noise(s.seed + k)) };
    const z = circle(s.s), found = estimates(z, drawn.many[0], s), t = range(STEPS + 1), off = errors(z, drawn.many, s);
    stage.model.set("path", Object.fromEntries(Object.keys(LOOKS).map((name) => [name, found.map((h) => [...h[name]])])));
    for (const name in LOOKS) {
      one.line(t, found.map((h) => h[name][0]), `${LOOKS[name]} ${name === "plain" ? "thin" : ""}`);
      all.line(t, off[name], LOOKS[name]);
    }
    one.line(t, z.map((at) => at[0]), "green dashed");
    one.legend([["truth", "green"], ["recursive", "blue"], ["average", "orange"], ["plain", "quiet"]]);
    const late = (name) => off[name].slice(-20).reduce((sum, error) => sum + error) / 20;
    const [plain, average, ours] = Object.keys(LOOKS).map(late);
    const story = s.eta >= 1 ? "Without memory all three are the plain sample"
      : ours > plain ? "The steps are too long: recursive momentum is worse than one sample"
      : ours > average ? "So slow a point suits the plain average better"
      : average > plain ? "The average lags behind, recursive momentum does not" : "Recursive momentum is the most accurate";
    return `${story}. Errors over the last 20 steps and ${SEEDS} seeds: plain ${show(plain)}, average ${show(average)}, recursive ${show(ours)}.`;
  };
});
