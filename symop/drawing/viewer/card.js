// Cards: the text of a folded block or an operator, and its size.
import { widthOf } from "./text.js";

const BOX_PADDING = 10, ROW = 250, CHIP_HEIGHT = 16, CHIP_GAP = 5;
export const LINE_HEIGHT = { name: 16, detail: 14, small: 14 };
const cards = new Map();

export function cardOf(block) {
  let card = cards.get(block.id);
  if (card === undefined) {
    card = measured(block);
    cards.set(block.id, card);
  }
  return card;
}

function measured(block) {
  const rows = inRows(block.chips.map(([text, paint, hover]) => (
    { text, paint, hover, width: widthOf(text, "chip") + 12 })));
  const lines = block.lines.map(([text, kind]) => ({ text, kind, width: widthOf(text, kind) }));
  const rowWidths = rows.map((row) => row.reduce((sum, chip) => sum + chip.width + CHIP_GAP, -CHIP_GAP));
  const toggle = block.children.length ? 32 : 0;
  const width = Math.max(56, ...lines.map((line) => line.width + toggle), ...rowWidths) + 2 * BOX_PADDING;
  const text = lines.reduce((sum, line) => sum + LINE_HEIGHT[line.kind], 0);
  return { width, height: text + rows.length * (CHIP_HEIGHT + 3) + 12, lines, rows, rowWidths };
}

function inRows(chips) {
  const rows = [];
  let width = ROW;
  for (const chip of chips) {
    if (width + chip.width > ROW) { rows.push([]); width = 0; }
    rows.at(-1).push(chip);
    width += chip.width + CHIP_GAP;
  }
  return rows;
}
