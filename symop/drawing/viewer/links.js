// Links: the edges between the blocks that one sees, inside each open block.
// Values that go to the same blocks share a port, which is a gap in the border of an open block.

const BORDER = -1;

export class Links {
  constructor(model, open) {
    this.model = model;
    this.open = open;
    this.lines = new Map();
    this.levels = new Map([...open].map((id) => [id, new Map()]));
    const edges = model.edges.map((edge) => [edge, this.#shared(edge)]);
    this.reached = new Map();
    for (const [edge, depth] of edges) this.#note(edge, depth);
    for (const [edge, depth] of edges) this.#lift(edge, depth);
  }

  of(id) { return [...this.levels.get(id).values()]; }

  // The open blocks around a leaf, and then the visible block that stands for it.
  line(leaf) {
    let line = this.lines.get(leaf);
    if (line === undefined) {
      line = this.model.line(leaf);
      const closed = line.findIndex((id) => !this.open.has(id));
      if (closed >= 0) line = line.slice(0, closed + 1);
      this.lines.set(leaf, line);
    }
    return line;
  }

  // The depth of the innermost open block that contains both ends. A value that is carried to the
  // next step leaves the block of the repeat, and enters it again.
  #shared([source, , target, over]) {
    const one = this.line(source), other = this.line(target);
    let depth = -1;
    while (depth + 1 < Math.min(one.length, other.length) && one[depth + 1] === other[depth + 1]
      && this.open.has(one[depth + 1])) {
      if (one[depth + 1] === over) return depth;
      depth++;
    }
    return depth;
  }

  #value(edge) { return `${edge[0]}.${edge[1]}.${edge[3]}`; }

  #note(edge, depth) {
    const line = this.line(edge[2]);
    for (const id of line.slice(depth + 1, -1)) {
      const key = `${id}:${this.#value(edge)}`;
      if (!this.reached.has(key)) this.reached.set(key, new Set());
      this.reached.get(key).add(line.at(-1));
    }
  }

  #lift(edge, depth) {
    const [source, , target, over] = edge, { blocks } = this.model;
    const out = this.line(source), into = this.line(target);
    if (out.at(-1) === into.at(-1)) return;
    const kind = blocks[source].back ? "gradient" : "forward";
    const start = out.slice(depth + 1), stop = into.slice(depth + 1);
    if (kind === "forward" && blocks[target].back) {
      // Only to its own gradient: other residuals would hide everything else.
      if (blocks[stop[0]].twin === start[0]) this.#add(out[depth], this.#end(start[0]), this.#end(stop[0]), "residual");
      return;
    }
    const ends = start.map((id) => this.#end(id, this.open.has(id) ? `o${out.at(-1)}` : null));
    const heads = stop.map((id) => this.#end(id, this.open.has(id) ? this.#entry(id, edge) : null));
    const carried = over >= 0 && start[0] === stop[0];
    if (!carried) this.#add(out[depth], ends[0], heads[0], kind);
    for (let i = 0; i + 1 < ends.length; i++) {
      this.#add(ends[i].block, ends[i + 1], this.#end(BORDER, ends[i].port), kind);
    }
    for (let i = 0; i + 1 < heads.length; i++) {
      this.#add(heads[i].block, this.#end(BORDER, heads[i].port), heads[i + 1], kind, heads[i].block === over);
    }
  }

  #end(block, port = null) { return { block, port }; }

  #entry(id, edge) {
    return `i${[...(this.reached.get(`${id}:${this.#value(edge)}`) ?? [])].sort((a, b) => a - b).join(",")}`;
  }

  #add(level, source, target, kind, carried = false) {
    const key = `${source.block}|${source.port}|${target.block}|${target.port}|${kind}`;
    const links = this.levels.get(level);
    if (!links.has(key)) links.set(key, { source, target, kind, carried });
    links.get(key).carried ||= carried;
  }
}

export const isBorder = (end) => end.block === BORDER;
