// Makes a PNG of at most 256 colours of `picture`, a PNG in base64, and gives it to `done` in the same way. Letters have many shades,
// which look the same and take most of the room.
const bytes = Uint8Array.from(atob(picture), (c) => c.charCodeAt(0));
const crcs = Array.from({ length: 256 }, (_, n) => { let c = n; for (let k = 0; k < 8; k += 1) c = c & 1 ? 0xedb88320 ^ (c >>> 1) : c >>> 1; return c >>> 0; });
const crc = (data) => { let c = 0xffffffff; for (const byte of data) c = crcs[(c ^ byte) & 255] ^ (c >>> 8); return (c ^ 0xffffffff) >>> 0; };
const number = (value) => [value >>> 24, (value >>> 16) & 255, (value >>> 8) & 255, value & 255];
const chunk = (name, data) => { const body = [...name].map((c) => c.charCodeAt(0)).concat(Array.from(data)); return [...number(data.length), ...body, ...number(crc(body))]; };
(async () => {
  const image = await createImageBitmap(new Blob([bytes], { type: 'image/png' }));
  const { width, height } = image;
  const context = new OffscreenCanvas(width, height).getContext('2d');
  context.drawImage(image, 0, 0);
  const { data } = context.getImageData(0, 0, width, height);
  const found = new Map();
  const at = (i) => (data[i] << 16) | (data[i + 1] << 8) | data[i + 2];
  for (let i = 0; i < data.length; i += 4) found.set(at(i), (found.get(at(i)) ?? 0) + 1);
  const parts = (colour) => [colour >> 16, (colour >> 8) & 255, colour & 255];
  const distance = (a, b) => parts(a).reduce((sum, part, i) => sum + (part - parts(b)[i]) ** 2, 0);
  // The most frequent colours, but none that is nearly one of them.
  const palette = [];
  for (const [colour] of [...found].sort((a, b) => b[1] - a[1])) {
    if (palette.length < 256 && palette.every((other) => distance(colour, other) > 60)) palette.push(colour);
  }
  const nearest = new Map();
  for (const colour of found.keys()) {
    let best = 0;
    for (let i = 1; i < palette.length; i += 1) if (distance(colour, palette[i]) < distance(colour, palette[best])) best = i;
    nearest.set(colour, best);
  }
  const rows = new Uint8Array((width + 1) * height);
  for (let y = 0; y < height; y += 1) for (let x = 0; x < width; x += 1) rows[y * (width + 1) + 1 + x] = nearest.get(at(4 * (y * width + x)));
  const packed = new Uint8Array(await new Response(new Blob([rows]).stream().pipeThrough(new CompressionStream('deflate'))).arrayBuffer());
  const png = [137, 80, 78, 71, 13, 10, 26, 10, ...chunk('IHDR', [...number(width), ...number(height), 8, 3, 0, 0, 0]), ...chunk('PLTE', palette.flatMap(parts))];
  const file = Uint8Array.from(png.concat(chunk('IDAT', packed), chunk('IEND', [])));
  let text = '';
  for (const byte of file) text += String.fromCharCode(byte);
  done(btoa(text));
})();
