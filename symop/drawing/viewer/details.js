// Details: what is known about a block, in the panel at the side and in the text at the pointer.

const PREFIXES = ["", "k", "M", "G", "T", "P"];

export function amount(value, unit) {
  if (value === null) return "?";
  let i = 0;
  while (value >= 1000 && i + 1 < PREFIXES.length) { value /= 1000; i++; }
  return `${Number(value.toPrecision(3))} ${PREFIXES[i]}${unit}`;
}

export function duration(seconds) {
  if (seconds >= 1) return `${Number(seconds.toPrecision(3))} s`;
  return seconds >= 1e-3 ? `${Number((seconds * 1e3).toPrecision(3))} ms` : `${Number((seconds * 1e6).toPrecision(3))} µs`;
}

export function costsOf(model, id) {
  const { flops, bytes, seconds } = model.costs[id], result = [];
  if (flops !== null) result.push(["computes", amount(flops, "flop")]);
  if (bytes !== null) result.push(["results", amount(bytes, "B")]);
  if (seconds !== null) result.push(["time", duration(seconds)]);
  return result;
}

function element(tag, text = null, className = "") {
  const result = document.createElement(tag);
  if (text !== null) result.textContent = text;
  if (className) result.className = className;
  return result;
}

export function tipOf(model, id) {
  const block = model.blocks[id];
  const rows = [...block.about.slice(1), ...costsOf(model, id).map((row) => row.join(": "))];
  return [element("b", block.about[0]), document.createTextNode(rows.join("\n"))];
}

// Fills the panel; ``go`` shows a block that is clicked there.
export function fill(panel, model, id, go) {
  const block = model.blocks[id];
  const parts = [element("h2", block.title)];
  const place = model.line(id).slice(1, -1).map((one) => model.blocks[one].title).join(" › ");
  if (place) parts.push(element("small", place));
  parts.push(table([...block.facts, ...costsOf(model, id)]));
  if (block.children.length) parts.push(...links("contains", block.children, model, go));
  else {
    parts.push(...links("reads", model.reads[id], model, go), ...links("is read by", model.readers[id], model, go));
  }
  if (block.twin >= 0) parts.push(...links("gradient of", [block.twin], model, go));
  const gradients = model.blocks.filter((one) => one.twin === id).map((one) => one.id);
  parts.push(...links("its gradient", gradients, model, go));
  const page = model.operators[block.op];
  if (page) parts.push(...pageOf(block.op, page));
  panel.replaceChildren(...parts);
}

function pageOf(name, { signature, page, gradient }) {
  const parts = [element("h3", `operator ${name}`), element("pre", signature, "page")];
  if (page) parts.push(element("pre", page, "page"));
  parts.push(element("h3", "its gradient, as a program"), element("pre", gradient));
  return parts;
}

function table(rows) {
  const list = element("dl");
  for (const [name, value] of rows) list.append(element("dt", name), element("dd", value));
  return list;
}

function links(title, ids, model, go) {
  const list = element("ul"), all = [...ids];
  for (const id of all.slice(0, 60)) {
    const item = element("li"), button = element("button", model.blocks[id].title);
    button.type = "button";
    button.addEventListener("click", () => go(id));
    item.append(button);
    list.append(item);
  }
  if (all.length > 60) list.append(element("li", `and ${all.length - 60} more`));
  return all.length ? [element("h3", title), list] : [];
}
