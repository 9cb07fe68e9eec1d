// Layout: each open block is laid out by itself with dagre, and is a frame in the layout around it.
// A block and its gradient are one cell, side by side; forward values go down, gradients up.
import { cardOf } from "./card.js";
import { isBorder } from "./links.js";
import { ROOT } from "./model.js";
import { widthOf } from "./text.js";

const HEADER = 24, PADDING = 14, TWIN_GAP = 46, INSET = 8;
const cache = new Map();

// Returns the panel of the root: what the open blocks contain, in coordinates of their own.
export function layOut(model, links, open) {
  const panels = new Map();
  for (const id of model.walk(ROOT).reverse()) {
    if (open.has(id) && links.levels.has(id)) panels.set(id, levelOf(model, id, links.of(id), panels));
  }
  return panels.get(ROOT);
}

// Returns a level from the cache if nothing in it has changed.
function levelOf(model, id, links, panels) {
  const children = model.blocks[id].children;
  const key = JSON.stringify([children.map((child) => panels.get(child)?.serial ?? 0), links]);
  const old = cache.get(id);
  if (old?.key === key) return old.panel;
  const panel = new Level(model, id, links, panels).panel();
  cache.set(id, { key, panel });
  return panel;
}

let serial = 0;

class Level {
  constructor(model, id, links, panels) {
    Object.assign(this, { model, id, links, panels });
    this.block = model.blocks[id];
    this.pair();
    this.edges = this.oriented();
    this.widen();
  }

  size(id) {
    const { width, height } = this.panels.get(id) ?? cardOf(this.model.blocks[id]);
    return { width, height };
  }

  // Puts each block in a cell with its gradient, and each port in one of its own.
  pair() {
    const { blocks } = this.model, inside = new Set(this.block.children);
    const twins = new Map(this.block.children.filter((id) => inside.has(blocks[id].twin))
      .map((id) => [blocks[id].twin, id]));
    this.cells = new Map();
    this.cellOf = new Map();
    for (const id of this.block.children) {
      if (inside.has(blocks[id].twin)) continue;
      const cell = { key: `b${id}`, left: id, right: twins.get(id), shift: 0, ...this.size(id) };
      this.cells.set(cell.key, cell);
      this.cellOf.set(id, cell.key);
      if (cell.right !== undefined) this.cellOf.set(cell.right, cell.key);
    }
    for (const { source, target } of this.links) {
      for (const end of [source, target]) {
        if (isBorder(end)) this.cells.set(end.port, { key: end.port, width: 10, height: 2, shift: 0 });
      }
    }
  }

  cellAt(end) { return isBorder(end) ? end.port : this.cellOf.get(end.block); }

  // The pairs of cells that are linked, the upper one first.
  oriented() {
    const edges = new Map();
    for (const { source, target, kind } of this.links) {
      let pair = [this.cellAt(source), this.cellAt(target)];
      if (kind === "gradient") pair.reverse();
      if (pair[0] === pair[1] || edges.has(`${pair[1]} ${pair[0]}`)) continue;
      edges.set(pair.join(" "), pair);
    }
    return [...edges.values()];
  }

  // Gives pairs, and the operators that follow them, the width of both columns.
  widen() {
    const cells = [...this.cells.values()], pairs = cells.filter((cell) => cell.right !== undefined);
    if (!pairs.length) return;
    const half = Math.max(...pairs.flatMap((cell) => [cell.left, cell.right]).map((id) => this.size(id).width));
    const wide = new Set(pairs);
    for (const [upper, lower] of this.edges) {
      const one = this.cells.get(upper), other = this.cells.get(lower);
      if (wide.has(one) && other.left !== undefined && other.width <= half) wide.add(other);
    }
    for (const cell of wide) {
      cell.shift = (half + TWIN_GAP) / 2;
      cell.width = 2 * half + TWIN_GAP;
      if (cell.right !== undefined) cell.height = Math.max(cell.height, this.size(cell.right).height);
    }
  }

  panel() {
    const graph = this.graph();
    dagre.layout(graph);
    this.bends = new Map(graph.edges().map((edge) => [`${edge.v} ${edge.w}`, bendsOf(graph.edge(edge))]));
    for (const cell of this.cells.values()) Object.assign(cell, { x: graph.node(cell.key).x, y: graph.node(cell.key).y });
    this.straighten();
    const whole = this.id === ROOT, { left, right, top, bottom } = this.bounds();
    const caption = whole ? 0 : widthOf(this.block.title, "caption") + 50;
    const width = Math.max(right - left + (whole ? 0 : 2 * PADDING), caption);
    const height = bottom - top + (whole ? 0 : HEADER + PADDING);
    const panel = { id: this.id, serial: ++serial, width, height, children: [], wires: [], ports: new Map() };
    this.dx = (width - right + left) / 2 - left;
    this.dy = (whole ? 0 : HEADER) - top;
    this.place(panel);
    for (const link of this.links) panel.wires.push(this.wire(link, panel));
    return panel;
  }

  // Puts all pairs in one column, if no two are in one row, and others of their rows beside them.
  straighten() {
    const cells = [...this.cells.values()], wide = cells.filter((cell) => cell.shift);
    if (!wide.length || new Set(wide.map((cell) => cell.y)).size < wide.length) return;
    const middle = wide.map((cell) => cell.x).sort((a, b) => a - b)[wide.length >> 1];
    for (const cell of wide) {
      cell.x = middle;
      const row = cells.filter((other) => other.y === cell.y && other !== cell);
      for (const side of [-1, 1]) this.push(cell, row.filter((other) => (other.x < middle ? -1 : 1) === side), side);
      for (const bend of [...this.bends.values()].flat()) {
        const far = cell.width / 2 + 14;
        if (Math.abs(bend[1] - cell.y) < cell.height / 2 + 4 && Math.abs(bend[0] - middle) < far) {
          bend[0] = bend[0] < middle ? middle - far : middle + far;
        }
      }
    }
  }

  // Moves the cells of a row on one side of a pair away from it, as far as needed.
  push(pair, row, side) {
    let free = pair.x + side * (pair.width / 2 + 24);
    for (const cell of row.sort((one, other) => side * (one.x - other.x))) {
      const nearest = free + side * (cell.width / 2);
      if (side * (cell.x - nearest) < 0) cell.x = nearest;
      free = cell.x + side * (cell.width / 2 + 24);
    }
  }

  // The box around cells and bends; ports are in its upper and lower border.
  bounds() {
    const result = { left: Infinity, right: -Infinity, top: Infinity, bottom: -Infinity };
    for (const { x, y, width, height } of this.cells.values()) {
      result.left = Math.min(result.left, x - width / 2);
      result.right = Math.max(result.right, x + width / 2);
      result.top = Math.min(result.top, y - height / 2);
      result.bottom = Math.max(result.bottom, y + height / 2);
    }
    for (const [x] of [...this.bends.values()].flat()) {
      result.left = Math.min(result.left, x - 4);
      result.right = Math.max(result.right, x + 4);
    }
    return this.cells.size ? result : { left: 0, right: 0, top: 0, bottom: 0 };
  }

  graph() {
    const graph = new dagre.graphlib.Graph();
    graph.setGraph({ rankdir: "TB", nodesep: 24, ranksep: 34, edgesep: 12 });
    for (const { key, width, height } of this.cells.values()) graph.setNode(key, { width, height });
    const { back } = this.block, tops = [], bottoms = [];
    for (const key of this.cells.keys()) {
      if (key[0] !== "b") ((key[0] === "i") !== back ? tops : bottoms).push(key);
    }
    for (const [upper, lower] of this.edges) {
      const aligned = this.cells.get(upper).shift && this.cells.get(lower).shift;
      graph.setEdge(upper, lower, { weight: aligned ? 8 : 1 });
    }
    this.pin(graph, tops, bottoms);
    return graph;
  }

  // Keeps ports in the first and the last row, by edges to a node above and one below all others.
  pin(graph, tops, bottoms) {
    if (tops.length) {
      graph.setNode("first", { width: 1, height: 1 });
      for (const key of tops) graph.setEdge("first", key, { weight: 100 });
    }
    if (!bottoms.length) return;
    const sinks = graph.sinks().filter((key) => !bottoms.includes(key) && key !== "first");
    graph.setNode("last", { width: 1, height: 1 });
    for (const key of bottoms) graph.setEdge(key, "last", { weight: 100 });
    for (const key of sinks) graph.setEdge(key, "last", { weight: 0, minlen: 2 });
  }

  place(panel) {
    this.at = new Map();
    for (const cell of this.cells.values()) {
      if (cell.left === undefined) {
        panel.ports.set(cell.key, cell.x + this.dx);
        continue;
      }
      const sides = [[cell.left, -cell.shift]];
      if (cell.right !== undefined) sides.push([cell.right, cell.shift]);
      for (const [id, shift] of sides) {
        const { width, height } = this.size(id), x = cell.x + shift + this.dx - width / 2;
        const spot = { id, x, y: cell.y + this.dy - height / 2, width, height, panel: this.panels.get(id) };
        this.at.set(id, spot);
        panel.children.push(spot);
      }
    }
  }

  wire({ source, target, kind, carried }, panel) {
    const one = this.cellAt(source), other = this.cellAt(target);
    if (one === other) return this.across(source, target, kind);
    const down = this.bends.get(`${one} ${other}`), up = this.bends.get(`${other} ${one}`);
    const bends = (down ?? [...up].reverse()).map(([x, y]) => [x + this.dx, y + this.dy]);
    const [x1, y1] = this.center(target, panel), below = this.center(source, panel)[1] < y1;
    const start = this.end(source, panel, below, bends[0] ?? [x1]);
    const stop = this.end(target, panel, !below, bends.at(-1) ?? start);
    return { points: [start, ...bends, stop], kind, carried };
  }

  across(source, target, kind) {
    const one = this.at.get(source.block), other = this.at.get(target.block);
    const y = one.y + one.height / 2;
    return { points: [[one.x + one.width, y], [other.x, y]], kind, across: true };
  }

  center(end, panel) {
    if (isBorder(end)) return [panel.ports.get(end.port), this.cells.get(end.port).y + this.dy];
    const { x, y, width, height } = this.at.get(end.block);
    return [x + width / 2, y + height / 2];
  }

  // The point where a wire leaves or enters a block, or the border.
  end(end, panel, below, [toward]) {
    if (isBorder(end)) return [panel.ports.get(end.port), below ? 0 : panel.height];
    const { x, y, width, height, panel: inner } = this.at.get(end.block);
    const edge = below ? y + height : y;
    const port = end.port === null ? undefined : inner?.ports.get(end.port);
    if (port !== undefined) return [x + port, edge];
    return [Math.min(Math.max(toward, x + INSET), x + width - INSET), edge];
  }
}

// The inner points of dagre's edge. Its ends are at the borders of cells; the middle of a short edge is no bend.
function bendsOf({ points }) {
  return points.length <= 3 ? [] : points.slice(1, -1).map(({ x, y }) => [x, y]);
}
