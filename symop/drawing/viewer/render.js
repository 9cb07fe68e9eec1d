// Rendering: only what is in view, and large enough to be seen, is in the document.
import { LINE_HEIGHT, cardOf } from "./card.js";
import { widthOf } from "./text.js";

const SVG = "http://www.w3.org/2000/svg";
const MARGIN = 250; // pixels around the window that are drawn ahead
const SMALLEST = 26; // pixels: the insides of a smaller frame are not drawn
const READABLE = 0.28; // scale: at a smaller one cards have no text

export function make(tag, attributes = {}, text = null) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  if (text !== null) element.textContent = text;
  return element;
}

export class Renderer {
  constructor(model, scene, camera) {
    Object.assign(this, { model, scene, camera });
    this.layer = scene.querySelector("#levels");
    this.marks = scene.querySelector("#marks");
    this.shown = new Map();
    this.color = "kind";
  }

  // Draws another layout.
  show(panel) {
    this.panel = panel;
    this.spots = new Map();
    this.#locate(panel, 0, 0);
    this.#clear();
    this.draw();
  }

  #locate(panel, x, y) {
    for (const spot of panel.children) {
      this.spots.set(spot.id, { ...spot, x: x + spot.x, y: y + spot.y });
      if (spot.panel) this.#locate(spot.panel, x + spot.x, y + spot.y);
    }
  }

  #clear() {
    this.layer.replaceChildren();
    this.shown.clear();
  }

  // Colors by "kind", or by "flops", "bytes" or "seconds".
  recolor(color) {
    this.color = color;
    this.#clear();
    this.draw();
  }

  moved() {
    const { x, y, scale } = this.camera;
    this.scene.setAttribute("transform", `translate(${x.toFixed(2)},${y.toFixed(2)}) scale(${scale.toFixed(5)})`);
    if (!this.pending) {
      this.pending = true;
      requestAnimationFrame(() => { this.pending = false; this.draw(); });
    }
  }

  // Adds what has come into view, and removes what has left it.
  draw() {
    if (!this.panel) return;
    const text = this.camera.scale >= READABLE;
    if (text !== this.text) { this.text = text; this.#clear(); }
    this.wanted = new Map();
    this.#want(this.panel, 0, 0, this.camera.view(MARGIN));
    for (const [key, element] of this.shown) {
      if (!this.wanted.has(key)) { element.remove(); this.shown.delete(key); }
    }
    const fresh = document.createDocumentFragment();
    for (const [key, build] of this.wanted) {
      if (this.shown.has(key)) continue;
      const element = build();
      this.shown.set(key, element);
      fresh.append(element);
    }
    this.layer.append(fresh);
    this.#order();
  }

  #want(panel, x, y, view) {
    this.wanted.set(`w${panel.id}`, () => this.#wires(panel, x, y));
    for (const spot of panel.children) {
      const left = x + spot.x, top = y + spot.y;
      if (left > view.right || top > view.bottom || left + spot.width < view.left || top + spot.height < view.top) continue;
      const open = spot.panel && Math.min(spot.width, spot.height) * this.camera.scale >= SMALLEST;
      if (spot.panel) this.wanted.set(`f${spot.id}`, () => this.#frame(spot, left, top));
      else this.wanted.set(`b${spot.id}`, () => this.#box(spot, left, top));
      if (open) this.#want(spot.panel, left, top, view);
    }
  }

  // Frames are behind wires, wires behind cards; outer ones are behind inner ones.
  #order() {
    const rank = (element) => Number(element.dataset.rank);
    const elements = [...this.layer.children];
    if (elements.every((element, i) => !i || rank(elements[i - 1]) <= rank(element))) return;
    this.layer.append(...elements.sort((one, other) => rank(one) - rank(other)));
  }

  #group(kind, id, rank) {
    const group = make("g", { class: kind, "data-id": id });
    group.dataset.rank = rank;
    return group;
  }

  #depth(id) { return this.model.line(id).length; }

  #paint(rect, id) {
    const share = this.share(id);
    if (share === null) return;
    rect.style.fill = `color-mix(in srgb, var(--heat) ${(60 * Math.sqrt(share)).toFixed(1)}%, var(--paper))`;
  }

  // The share of a block in what the whole graph costs; null if colors show kinds.
  share(id) {
    if (this.color === "kind") return null;
    const cost = this.model.costs[id][this.color], total = this.model.costs[0][this.color];
    return total > 0 ? (cost ?? 0) / total : 0;
  }

  #frame(spot, x, y) {
    const block = this.model.blocks[spot.id], group = this.#group("frame", spot.id, this.#depth(spot.id));
    const edge = make("rect", { class: `edge ${block.paint}`, x, y, width: spot.width, height: spot.height, rx: 8 });
    this.#paint(edge, spot.id);
    group.append(edge);
    if (this.text) {
      const width = widthOf(block.title, "caption") + 30;
      group.append(
        make("rect", { class: `ground ${block.paint}`, x: x + 5, y: y + 4, width, height: 17, rx: 4, "stroke-width": 0 }),
        make("text", { class: `caption ${block.paint}`, x: x + 25, y: y + 16.5 }, block.title),
        this.#toggle(x + 14, y + 12.5, block, false),
      );
    }
    return group;
  }

  #toggle(x, y, block, closed) {
    const group = make("g", { class: "toggle", "data-toggle": block.id });
    group.append(make("circle", { class: block.paint, cx: x, cy: y, r: 6 }),
      make("path", { d: `M${x - 3} ${y}h6${closed ? `M${x} ${y - 3}v6` : ""}` }));
    return group;
  }

  #box(spot, x, y) {
    const block = this.model.blocks[spot.id], { width, height } = spot;
    const group = this.#group("box", spot.id, 1000);
    const corner = { rx: block.round ? Math.min(14, height / 2) : 5 };
    if (this.color !== "kind") group.classList.add("heated");
    const shape = { class: block.paint, width, height, ...corner };
    if (block.stacked) group.append(make("rect", { ...shape, x: x + 4, y: y + 4 }));
    const front = make("rect", { ...shape, x, y });
    this.#paint(front, spot.id);
    group.append(front);
    if (!this.text) return group;
    this.#write(group, cardOf(block), x + width / 2, y);
    if (block.children.length) group.append(this.#toggle(x + width - 12, y + 12, block, true));
    return group;
  }

  #write(group, card, center, y) {
    let baseline = y + 4;
    for (const { text, kind } of card.lines) {
      baseline += LINE_HEIGHT[kind];
      group.append(make("text", { class: kind, x: center, y: baseline - 2, "text-anchor": "middle" }, text));
    }
    let top = baseline + 4;
    card.rows.forEach((row, i) => {
      let left = center - card.rowWidths[i] / 2;
      for (const chip of row) {
        const part = make("g", { class: "chip" });
        part.append(make("rect", { class: chip.paint, x: left, y: top, width: chip.width, height: 16, rx: 8 }),
          make("text", { x: left + chip.width / 2, y: top + 11.5, "text-anchor": "middle",
            class: chip.paint === "output" ? "output-text" : "" }, chip.text));
        group.append(part);
        left += chip.width + 5;
      }
      top += 19;
    });
  }

  #wires(panel, x, y) {
    const group = this.#group("wires", panel.id, this.#depth(panel.id) + 0.5);
    const paths = {}, tips = {}, marks = [];
    for (const { points, kind, carried, across } of panel.wires) {
      const moved = points.map(([a, b]) => [a + x, b + y]);
      paths[kind] = (paths[kind] ?? "") + (across ? straight(moved) : curve(moved));
      tips[kind] = (tips[kind] ?? "") + tip(moved, across);
      if (carried) marks.push(make("text", { class: "small", x: moved[0][0] + 5, y: moved[0][1] + (moved[0][1] < moved[1][1] ? 14 : -6) }, "↻"));
    }
    for (const [kind, d] of Object.entries(paths)) group.append(make("path", { class: `wire ${kind}`, d }));
    for (const [kind, d] of Object.entries(tips)) group.append(make("path", { class: `tip ${kind}`, d }));
    group.append(...(this.text ? marks : []));
    return group;
  }

  // Outlines a chosen block, and those that it reads or that read it.
  mark(chosen, near) {
    const outline = (id, name) => {
      const spot = this.spots.get(id);
      return spot && make("rect", { class: name, x: spot.x - 4, y: spot.y - 4, width: spot.width + 8, height: spot.height + 8, rx: 9 });
    };
    const outlines = [...near].map((id) => outline(id, "mark near"));
    if (chosen !== null) outlines.push(outline(chosen, "mark"));
    this.marks.replaceChildren(...outlines.filter(Boolean));
  }
}

const round = (value) => Math.round(value * 10) / 10;

function straight([[x, y], [to]]) { return `M${round(x)} ${round(y)}H${round(to - 5)}`; }

// A curve whose direction at each point is vertical.
function curve(points) {
  let [x, y] = points[0], d = `M${round(x)} ${round(y)}`;
  for (const [nextX, nextY] of points.slice(1)) {
    const middle = round((y + nextY) / 2);
    d += Math.abs(nextX - x) < 0.5 ? `L${round(nextX)} ${round(nextY)}`
      : `C${round(x)} ${middle} ${round(nextX)} ${middle} ${round(nextX)} ${round(nextY)}`;
    [x, y] = [nextX, nextY];
  }
  return d;
}

function tip(points, across) {
  const [x, y] = points.at(-1);
  if (across) return `M${round(x)} ${round(y)}l-6 -3.5v7z`;
  return `M${round(x)} ${round(y)}l-3.5 ${y < points.at(-2)[1] ? 6 : -6}h7z`;
}
