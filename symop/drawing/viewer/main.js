// The page: state (which blocks are open, which is chosen), and what users do.
import { Camera } from "./camera.js";
import { fill, tipOf } from "./details.js";
import { layOut } from "./layout.js";
import { Links } from "./links.js";
import { Model, ROOT } from "./model.js";
import { Renderer } from "./render.js";
import { Search } from "./search.js";

const SMALLEST_START = 0.75; // scale
const MOST_OPENED = 4000; // boxes: `unfold` opens no further level beyond

class Page {
  constructor(model) {
    this.model = model;
    this.open = new Set([ROOT, ...model.open]);
    this.chosen = null;
    this.canvas = document.getElementById("canvas");
    this.camera = new Camera(this.canvas, () => this.renderer?.moved());
    this.renderer = new Renderer(model, document.getElementById("scene"), this.camera);
    this.search = new Search(model, document.getElementById("search"), document.getElementById("results"), (id) => this.go(id));
    this.#header();
    this.#listen();
    this.relayout();
    this.start();
  }

  // Shows the drawing, or its upper part if it would be too small to read.
  start() {
    this.camera.fit({ x: 0, y: 0, width: this.panel.width, height: this.panel.height }, 1.25, SMALLEST_START);
    this.home = [this.camera.x, this.camera.y, this.camera.scale].join();
  }

  // A drawing that has not been touched follows the size of the window.
  resized() {
    if (this.home === [this.camera.x, this.camera.y, this.camera.scale].join()) this.start();
    else this.renderer.draw();
  }

  // Lays out and draws again. The block ``still`` stays where it is on the screen.
  relayout(still = null) {
    const before = still === null ? undefined : this.renderer.spots?.get(still);
    this.links = new Links(this.model, this.open);
    this.panel = layOut(this.model, this.links, this.open);
    this.renderer.show(this.panel);
    const after = still === null ? undefined : this.renderer.spots.get(still);
    if (before && after) {
      this.camera.move((before.x - after.x) * this.camera.scale, (before.y - after.y) * this.camera.scale);
    }
    this.#mark();
  }

  fit() { this.camera.fit({ x: 0, y: 0, width: this.panel.width, height: this.panel.height }, 1.25); }

  toggle(id) {
    if (!this.model.blocks[id].children.length) return;
    if (this.open.has(id)) for (const inner of this.model.walk(id)) this.open.delete(inner);
    else this.#openOne(id);
    this.relayout(id);
  }

  // A block that contains a single block opens with it.
  #openOne(id) {
    this.open.add(id);
    const { children } = this.model.blocks[id];
    if (children.length === 1 && this.model.blocks[children[0]].children.length) this.#openOne(children[0]);
  }

  unfold() {
    const next = this.model.blocks.filter((block) => block.children.length && !this.open.has(block.id)
      && this.open.has(block.parent));
    const count = next.reduce((sum, block) => sum + block.children.length, this.renderer.spots.size);
    if (count > MOST_OPENED) return;
    next.forEach((block) => this.open.add(block.id));
    this.relayout();
    this.start();
  }

  fold() {
    this.open = new Set([ROOT]);
    this.relayout();
    this.start();
  }

  // Opens what contains a block, chooses it and moves there.
  go(id) {
    const around = this.model.line(id).slice(0, -1);
    if (around.some((one) => !this.open.has(one))) {
      around.forEach((one) => this.open.add(one));
      this.relayout();
    }
    this.choose(id);
    const spot = this.renderer.spots.get(id);
    if (spot) this.camera.fit({ x: spot.x - 200, y: spot.y - 150, width: spot.width + 400, height: spot.height + 300 });
  }

  choose(id) {
    this.chosen = id;
    this.home = null;
    document.getElementById("side").hidden = id === null;
    if (id !== null) fill(document.getElementById("details"), this.model, id, (one) => this.go(one));
    this.#mark();
  }

  #mark() {
    const near = new Set();
    if (this.chosen !== null) {
      for (const leaf of this.model.walk(this.chosen)) {
        for (const other of [...this.model.reads[leaf], ...this.model.readers[leaf]]) near.add(this.links.line(other).at(-1));
      }
      for (const inner of this.model.walk(this.chosen)) near.delete(inner);
    }
    this.renderer.mark(this.chosen, near);
  }

  // Controls

  #header() {
    const { model } = this;
    document.getElementById("title").textContent = model.title;
    document.getElementById("summary").textContent = model.summary;
    const select = document.getElementById("color");
    const known = Object.entries({ bytes: "memory", flops: "operations", seconds: "time" })
      .filter(([kind]) => model.costs[ROOT][kind]);
    for (const [value, text] of [["kind", "kind"], ...known]) select.append(new Option(text, value));
    select.value = model.color;
    this.#colorBy(select.value);
    select.addEventListener("change", () => this.#colorBy(select.value));
  }

  #colorBy(color) {
    this.renderer.recolor(color);
    const legend = document.getElementById("legend");
    legend.replaceChildren();
    const add = (className, text) => {
      const item = document.createElement("span"), swatch = document.createElement("i");
      swatch.className = className;
      if (className !== "scale") {
        swatch.style.background = `var(--${className}-fill, var(--${className}))`;
        swatch.style.borderColor = `var(--${className})`;
      }
      item.append(swatch, text);
      legend.append(item);
    };
    if (color === "kind") for (const [paint, text] of this.model.legend) add(paint, text);
    else add("scale", "share of the whole graph, from none to all");
  }

  #listen() {
    const { canvas } = this, on = (id, action) => document.getElementById(id).addEventListener("click", action);
    on("unfold", () => this.unfold());
    on("fold", () => this.fold());
    on("fit", () => this.fit());
    on("close", () => this.choose(null));
    on("theme", () => setTheme(document.documentElement.dataset.theme === "dark" ? "light" : "dark"));
    canvas.addEventListener("click", (event) => this.#click(event));
    canvas.addEventListener("dblclick", (event) => {
      const id = idAt(event.target);
      if (id !== null && !event.target.closest("[data-toggle]")) this.toggle(id);
    });
    canvas.addEventListener("pointermove", (event) => this.#hover(event));
    canvas.addEventListener("pointerleave", () => { document.getElementById("tip").hidden = true; });
    new ResizeObserver(() => this.resized()).observe(canvas);
    window.addEventListener("keydown", (event) => this.#key(event));
  }

  #click(event) {
    if (this.camera.dragged) return;
    const toggle = event.target.closest("[data-toggle]");
    if (toggle) this.toggle(Number(toggle.dataset.toggle));
    else this.choose(idAt(event.target));
  }

  #hover(event) {
    const tip = document.getElementById("tip"), id = event.buttons ? null : idAt(event.target);
    if (id !== this.hovered) {
      this.hovered = id;
      if (id !== null) tip.replaceChildren(...tipOf(this.model, id));
    }
    tip.hidden = id === null;
    if (id === null) return;
    const area = canvas.parentElement.getBoundingClientRect(), { width, height } = tip.getBoundingClientRect();
    const x = event.clientX - area.left + 14, y = event.clientY - area.top + 14;
    tip.style.left = `${Math.max(4, Math.min(x, area.width - width - 8))}px`;
    tip.style.top = `${y + height + 8 > area.height ? Math.max(4, y - height - 28) : y}px`;
  }

  #key(event) {
    if (event.target.matches("input, select, textarea")) return;
    const step = 80, actions = {
      "/": () => document.getElementById("search").focus(), Escape: () => this.choose(null),
      0: () => this.fit(), "+": () => this.camera.zoomCenter(1.25), "=": () => this.camera.zoomCenter(1.25),
      "-": () => this.camera.zoomCenter(0.8), Enter: () => this.chosen !== null && this.toggle(this.chosen),
      ArrowLeft: () => this.camera.move(step, 0), ArrowRight: () => this.camera.move(-step, 0),
      ArrowUp: () => this.camera.move(0, step), ArrowDown: () => this.camera.move(0, -step),
    };
    const action = actions[event.key];
    if (!action || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    action();
  }
}

function idAt(target) {
  const element = target.closest(".box, .frame");
  return element === null ? null : Number(element.dataset.id);
}

function setTheme(name) { document.documentElement.dataset.theme = name; }

const preference = matchMedia("(prefers-color-scheme: dark)");
setTheme(preference.matches ? "dark" : "light");
preference.addEventListener("change", (event) => setTheme(event.matches ? "dark" : "light"));
window.drawing = new Page(new Model(JSON.parse(document.getElementById("model").textContent)));
