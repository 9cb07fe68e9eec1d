// The camera: which part of the drawing is seen, and how large.

export class Camera {
  constructor(canvas, onMove) {
    this.canvas = canvas;
    this.onMove = onMove;
    this.x = this.y = 0;
    this.scale = 1;
    this.#listen();
  }

  // The visible part, in coordinates of the drawing, with a margin in pixels.
  view(margin = 0) {
    const { width, height } = this.canvas.getBoundingClientRect();
    return {
      left: (-this.x - margin) / this.scale, top: (-this.y - margin) / this.scale,
      right: (width - this.x + margin) / this.scale, bottom: (height - this.y + margin) / this.scale,
    };
  }

  zoom(factor, x, y) {
    const scale = Math.min(4, Math.max(0.005, this.scale * factor));
    this.x = x - ((x - this.x) * scale) / this.scale;
    this.y = y - ((y - this.y) * scale) / this.scale;
    this.scale = scale;
    this.onMove();
  }

  zoomCenter(factor) {
    const { width, height } = this.canvas.getBoundingClientRect();
    this.zoom(factor, width / 2, height / 2);
  }

  move(dx, dy) {
    this.x += dx;
    this.y += dy;
    this.onMove();
  }

  // Shows a rectangle, between ``smallest`` and ``largest`` times its size; of a larger one the top.
  fit({ x, y, width, height }, largest = 1, smallest = 0.005) {
    const area = this.canvas.getBoundingClientRect(), margin = 18;
    const wanted = Math.min((area.width - 2 * margin) / width, (area.height - 2 * margin) / height, largest);
    this.scale = Math.max(wanted, smallest);
    this.x = (area.width - width * this.scale) / 2 - x * this.scale;
    this.y = Math.max((area.height - height * this.scale) / 2, margin) - y * this.scale;
    this.onMove();
  }

  #listen() {
    const { canvas } = this, pointers = new Map();
    canvas.addEventListener("wheel", (event) => {
      event.preventDefault();
      const area = canvas.getBoundingClientRect();
      const pixels = event.deltaY * (event.deltaMode ? 20 : 1);
      this.zoom(Math.exp(-pixels * (event.ctrlKey ? 0.01 : 0.0015)), event.clientX - area.left, event.clientY - area.top);
    }, { passive: false });
    canvas.addEventListener("pointerdown", (event) => {
      pointers.set(event.pointerId, event);
      this.dragged = false;
    });
    window.addEventListener("pointermove", (event) => {
      const before = pointers.get(event.pointerId);
      if (before === undefined) return;
      const dx = event.clientX - before.clientX, dy = event.clientY - before.clientY;
      if (!this.dragged && Math.hypot(dx, dy) < 4) return;
      this.dragged = true;
      canvas.classList.add("dragging");
      pointers.set(event.pointerId, event);
      if (pointers.size === 2) this.#pinch(pointers, before, event);
      else this.move(dx, dy);
    });
    for (const name of ["pointerup", "pointercancel"]) {
      window.addEventListener(name, (event) => {
        pointers.delete(event.pointerId);
        canvas.classList.remove("dragging");
      });
    }
  }

  #pinch(pointers, before, event) {
    const other = [...pointers.values()].find((one) => one.pointerId !== event.pointerId);
    const distance = (one) => Math.hypot(one.clientX - other.clientX, one.clientY - other.clientY);
    const area = this.canvas.getBoundingClientRect();
    this.zoom(distance(event) / Math.max(distance(before), 1), other.clientX - area.left, other.clientY - area.top);
  }
}
