// The model: blocks in blocks, whose leaves are operators, and edges between leaves.
// symop/drawing/model.py writes it, and its docstring describes each field.

export const ROOT = 0;

// Fields that a block lacks have these values.
const DEFAULTS = { parent: -1, chips: [], back: false, twin: -1, stacked: false, round: false, op: "", cost: null };

export class Model {
  constructor(data) {
    Object.assign(this, data);
    this.blocks = data.blocks.map((block, id) => ({ ...DEFAULTS, ...block, id, children: [] }));
    this.blocks.forEach((block, id) => {
      if (id !== ROOT) this.blocks[block.parent].children.push(id);
    });
    this.reads = this.blocks.map(() => new Set());
    this.readers = this.blocks.map(() => new Set());
    for (const [source, , target] of this.edges) {
      this.reads[target].add(source);
      this.readers[source].add(target);
    }
    this.costs = this.#totals();
  }

  // The text in which a search finds a block.
  textOf(id) {
    const { title, op, facts, chips } = this.blocks[id];
    return [title, op, ...facts.flat(), ...chips.flatMap(([text, , hover]) => [text, hover])].join(" ").toLowerCase();
  }

  // The ids of the blocks around a block, from the root, and its own.
  line(id) {
    const result = [id];
    while (id !== ROOT) { id = this.blocks[id].parent; result.push(id); }
    return result.reverse();
  }

  // The blocks inside a block and itself, each before those that it contains.
  walk(id) {
    const result = [], waiting = [id];
    while (waiting.length) {
      const next = waiting.pop();
      result.push(next);
      waiting.push(...[...this.blocks[next].children].reverse());
    }
    return result;
  }

  // For each block the sums of what its leaves cost; null where one of them is not known.
  #totals() {
    const kinds = ["flops", "bytes", "seconds"];
    const totals = this.blocks.map((block) => Object.fromEntries(
      kinds.map((kind) => [kind, block.cost?.[kind] ?? null])));
    for (let id = this.blocks.length - 1; id > ROOT; id--) {
      const parent = totals[this.blocks[id].parent];
      for (const kind of kinds) {
        if (totals[id][kind] !== null) parent[kind] = (parent[kind] ?? 0) + totals[id][kind];
      }
    }
    return totals;
  }
}
