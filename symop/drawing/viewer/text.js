// Widths of text, measured once for each string and font.

const FAMILY = 'Helvetica, Arial, "DejaVu Sans", sans-serif';
const FONTS = {
  name: `700 12px ${FAMILY}`, detail: `10.5px ${FAMILY}`, small: `10.5px ${FAMILY}`,
  chip: `10px ${FAMILY}`, caption: `700 11.5px ${FAMILY}`,
};
const context = document.createElement("canvas").getContext("2d");
const known = new Map();

export function widthOf(text, font) {
  const key = `${font}|${text}`;
  let width = known.get(key);
  if (width === undefined) {
    context.font = FONTS[font];
    width = context.measureText(text).width;
    known.set(key, width);
  }
  return width;
}
