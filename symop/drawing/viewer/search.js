// Search: blocks whose title, names, line, type, attributes or parameters contain all words typed.

const MOST = 60;

export class Search {
  constructor(model, input, results, go) {
    Object.assign(this, { model, input, results, go });
    this.texts = model.blocks.map((block) => model.textOf(block.id));
    input.addEventListener("input", () => this.#update());
    input.addEventListener("focus", () => this.#update());
    input.addEventListener("blur", () => setTimeout(() => { results.hidden = true; }, 150));
    input.addEventListener("keydown", (event) => this.#key(event));
  }

  found(query) {
    const words = query.toLowerCase().split(/\s+/).filter(Boolean);
    if (!words.length) return [];
    const ids = [];
    this.texts.forEach((text, id) => { if (id && words.every((word) => text.includes(word))) ids.push(id); });
    return ids;
  }

  #update() {
    const ids = this.found(this.input.value);
    this.chosen = 0;
    this.results.hidden = !this.input.value.trim();
    const items = ids.slice(0, MOST).map((id) => this.#item(id));
    const count = document.createElement("li");
    count.className = "count";
    count.textContent = ids.length === 1 ? "1 match" : `${ids.length.toLocaleString("en")} matches`;
    this.results.replaceChildren(count, ...items);
    this.items = items;
    this.#choose(0);
  }

  #item(id) {
    const item = document.createElement("li"), small = document.createElement("small");
    item.textContent = this.model.blocks[id].title;
    small.textContent = this.model.line(id).slice(1, -1).map((one) => this.model.blocks[one].title).join(" › ");
    item.append(small);
    item.dataset.id = id;
    item.addEventListener("mousedown", () => this.go(id));
    return item;
  }

  #choose(i) {
    if (!this.items.length) return;
    this.chosen = (i + this.items.length) % this.items.length;
    this.items.forEach((item, k) => item.classList.toggle("chosen", k === this.chosen));
    this.items[this.chosen].scrollIntoView({ block: "nearest" });
  }

  // The list would cover the details of the block that is shown.
  #enter() {
    this.results.hidden = true;
    this.go(Number(this.items[this.chosen].dataset.id));
  }

  #key(event) {
    if (event.key === "ArrowDown") this.#choose(this.chosen + 1);
    else if (event.key === "ArrowUp") this.#choose(this.chosen - 1);
    else if (event.key === "Enter" && this.items?.length) this.#enter();
    else if (event.key === "Escape") this.input.blur();
    else return;
    event.preventDefault();
  }
}
