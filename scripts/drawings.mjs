/**
 * Makes the drawings of docs/concepts: writes docs/pictures/*.svg. Each drawing is a list of shapes below. A
 * test (test/docs/drawings.test.ts) fails when a file differs from the output of this script. Run it by hand:
 * `node scripts/drawings.mjs`.
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const WIDTH = 720;
const CHARACTER = 7.4; // The width of a character of 13 px system text, slightly more than most fonts need.

/** Colours follow the reader's scheme, also in an <img>. */
const STYLE = `
    text { font: 13px system-ui, sans-serif; fill: #1f2328 }
    .small { font-size: 12px; fill: #59636e }
    .box { fill: #f6f8fa; stroke: #818b98 }
    .memory { fill: #ddf4ff; stroke: #0969da }
    .gone { fill: none; stroke: #818b98; stroke-dasharray: 4 3 }
    .line { stroke: #818b98; stroke-width: 1.5; fill: none }
    .thick { stroke: #0969da; stroke-width: 5; fill: none }
    .head { fill: #818b98 }
    @media (prefers-color-scheme: dark) {
      text { fill: #e6edf3 }
      .small { fill: #9198a1 }
      .box { fill: #21262d; stroke: #9198a1 }
      .memory { fill: #121d2f; stroke: #4493f8 }
      .gone, .line { stroke: #9198a1 }
      .thick { stroke: #4493f8 }
      .head { fill: #9198a1 }
    }`;

const escaped = (text) => text.replace(/&/g, '&amp;').replace(/</g, '&lt;');

/** Returns text whose width is checked. A line that would leave the drawing throws an error. */
function text(x, y, line, { kind = '', anchor = 'start' } = {}) {
  const width = line.length * CHARACTER * (kind === 'small' ? 0.92 : 1);
  const left = anchor === 'start' ? x : anchor === 'middle' ? x - width / 2 : x - width;
  if (left < 0 || left + width > WIDTH) throw new Error(`'${line}' does not fit the drawing`);
  return `<text x="${x}" y="${y}" text-anchor="${anchor}"${kind && ` class="${kind}"`}>${escaped(line)}</text>`;
}

/** Returns a box with lines of text in its middle. */
function box(x, y, width, height, lines, kind = 'box') {
  const first = y + height / 2 - (lines.length - 1) * 8.5 + 4.5;
  for (const line of lines)
    if (line.length * CHARACTER > width) throw new Error(`'${line}' does not fit its box`);
  return [
    `<rect x="${x}" y="${y}" width="${width}" height="${height}" rx="5" class="${kind}"/>`,
    ...lines.map((line, i) => text(x + width / 2, first + 17 * i, line, { anchor: 'middle' })),
  ].join('\n  ');
}

/** Returns an arrow along a horizontal or vertical line, with a text above it. */
function arrow(x1, y1, x2, y2, label = '', { kind = 'line', both = false } = {}) {
  const head = (x, y, dx, dy) =>
    `<path class="head" d="M${x} ${y} L${x - 9 * dx - 4 * dy} ${y - 9 * dy - 4 * dx} L${x - 9 * dx + 4 * dy} ${y - 9 * dy + 4 * dx} Z"/>`;
  const [dx, dy] = [Math.sign(x2 - x1), Math.sign(y2 - y1)];
  return [
    `<path class="${kind}" d="M${x1} ${y1} L${x2} ${y2}"/>`,
    kind === 'thick' ? '' : head(x2, y2, dx, dy),
    both && kind !== 'thick' ? head(x1, y1, -dx, -dy) : '',
    label && text((x1 + x2) / 2, (y1 + y2) / 2 - 7, label, { kind: 'small', anchor: 'middle' }),
  ]
    .filter(Boolean)
    .join('\n  ');
}

/** Returns two processes at the two sides of a drawing. */
function sides(height, left = 'client process', right = 'server process') {
  return [
    box(10, 34, 150, height, []),
    box(560, 34, 150, height, []),
    text(85, 24, left, { anchor: 'middle' }),
    text(635, 24, right, { anchor: 'middle' }),
  ];
}

function sizeRow(y, size, way, picture) {
  return [
    text(10, y + 25, size, { kind: 'small' }),
    text(150, y + 25, way),
    ...picture,
    `<path class="line" stroke-opacity="0.3" d="M10 ${y + 48} L710 ${y + 48}"/>`,
  ];
}

/**
 * The drawings by file name. Each has its height, its description for readers who cannot see it, and its
 * shapes.
 */
const drawings = {
  session: {
    height: 260,
    title: 'A session: the sideband connection and the queue pair',
    shapes: [
      ...sides(216),
      box(25, 55, 120, 44, ['your calls']),
      box(25, 190, 120, 44, ['arena, slots'], 'memory'),
      box(575, 55, 120, 44, ['your handlers']),
      box(575, 190, 120, 44, ['arena, slots'], 'memory'),
      arrow(160, 100, 560, 100, 'sideband connection: handshake, liveness, closing', { both: true }),
      arrow(85, 99, 85, 190, '', { both: true }),
      arrow(635, 99, 635, 190, '', { both: true }),
      arrow(160, 212, 560, 212, '', { kind: 'thick' }),
      text(360, 196, 'queue pair: every call (SEND, READ, WRITE)', { anchor: 'middle' }),
      text(360, 236, 'shm, shm-fd, verbs or tcp', { kind: 'small', anchor: 'middle' }),
    ],
  },
  sizes: {
    height: 232,
    title: 'Four ways for a message, by its size',
    shapes: [
      ...sizeRow(10, 'some 200 bytes', 'inline', [
        box(330, 16, 230, 32, ['send request with the message'], 'memory'),
        arrow(560, 32, 600, 32),
        box(600, 16, 100, 32, ['receive']),
      ]),
      ...sizeRow(64, 'up to a slot', 'SEND', [
        box(330, 70, 100, 32, ['slot'], 'memory'),
        arrow(430, 86, 600, 86, 'one SEND'),
        box(600, 70, 100, 32, ['receive']),
      ]),
      ...sizeRow(118, 'up to 32 KiB', 'several SENDs', [
        box(330, 124, 48, 32, ['part'], 'memory'),
        box(382, 124, 48, 32, ['part'], 'memory'),
        arrow(430, 140, 600, 140, 'two to four SENDs'),
        box(600, 124, 100, 32, ['put together']),
      ]),
      ...sizeRow(172, 'larger', 'READ, WRITE', [
        box(330, 178, 130, 32, ["client's memory"], 'memory'),
        arrow(460, 183, 580, 183, 'READ'),
        arrow(580, 207, 460, 207),
        text(520, 201, 'WRITE', { kind: 'small', anchor: 'middle' }),
        box(580, 178, 130, 32, ["server's arena"], 'memory'),
      ]),
    ],
  },
  'large-call': {
    height: 372,
    title: 'A large call: the server READs the request and WRITEs the response',
    shapes: [
      text(85, 24, 'client', { anchor: 'middle' }),
      text(635, 24, 'server', { anchor: 'middle' }),
      '<path class="gone" d="M85 34 L85 360"/>',
      '<path class="gone" d="M635 34 L635 360"/>',
      box(20, 44, 130, 34, ['makes keys'], 'memory'),
      arrow(85, 106, 635, 106, 'SEND: request frame, where the bytes are, keys'),
      arrow(635, 146, 85, 146, 'READ of the request, out of the client memory'),
      box(570, 166, 130, 34, ['handler runs']),
      arrow(635, 232, 85, 232, 'WRITE of the response, into the client memory'),
      arrow(635, 272, 85, 272, 'SEND: response frame'),
      box(20, 292, 130, 34, ['ends the keys'], 'memory'),
      text(160, 348, 'then the promise settles: nothing can change the response any more', { kind: 'small' }),
    ],
  },
  credits: {
    height: 236,
    title: 'Credits: a frame waits until the peer has a receive for it',
    shapes: [
      ...sides(190, 'sender', 'receiver'),
      box(25, 50, 120, 30, ['frame 1'], 'memory'),
      box(25, 88, 120, 30, ['frame 2'], 'memory'),
      box(25, 126, 120, 30, ['frame 3'], 'memory'),
      box(25, 178, 120, 34, ['frame 4 waits'], 'gone'),
      box(575, 50, 120, 30, ['receive']),
      box(575, 88, 120, 30, ['receive']),
      box(575, 126, 120, 30, ['receive']),
      arrow(145, 65, 575, 65, 'SEND, 2 credits left'),
      arrow(145, 103, 575, 103, 'SEND, 1 credit left'),
      arrow(145, 141, 575, 141, 'SEND, no credit left'),
      arrow(575, 195, 145, 195, 'a frame brings 2 credits: frame 4 may go'),
    ],
  },
  leases: {
    height: 250,
    title: 'A lease: a block of the arena, its message, and three ways back',
    shapes: [
      box(10, 40, 700, 60, [], 'box'),
      text(20, 30, 'arena of the thread: 256 MiB, reserved as it is needed', { kind: 'small' }),
      box(30, 52, 150, 36, ['free']),
      box(190, 52, 250, 36, ['block of a large message'], 'memory'),
      box(450, 52, 240, 36, ['free']),
      arrow(315, 150, 315, 90),
      box(190, 150, 250, 34, ['message.data: a view, a lease']),
      arrow(440, 167, 500, 167),
      text(508, 152, 'the call is over (requests)', { kind: 'small' }),
      text(508, 171, 'release()', { kind: 'small' }),
      text(508, 190, 'the collector finds it', { kind: 'small' }),
      box(190, 206, 250, 32, ['later: an empty view'], 'gone'),
      arrow(315, 184, 315, 206),
    ],
  },
  'peer-dies': {
    height: 262,
    title: 'A peer dies: what calls see',
    shapes: [
      box(10, 34, 200, 216, []),
      text(110, 24, 'client', { anchor: 'middle' }),
      box(560, 34, 150, 76, ['server', 'killed'], 'gone'),
      box(560, 170, 150, 76, ['another server', 'or the next start']),
      box(22, 46, 176, 34, ['sideband ends']),
      arrow(560, 63, 198, 63, 'the kernel closes it, at once'),
      box(22, 104, 176, 56, ['calls in flight:', 'UNAVAILABLE, maybe']),
      box(22, 182, 176, 56, ['calls not sent yet,', 'new calls'], 'memory'),
      arrow(198, 210, 560, 210, 'the next connection'),
    ],
  },
};

/** Returns the text of one drawing. */
function svgOf({ height, title, shapes }) {
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" role="img">
  <title>${escaped(title)}</title>
  <style>${STYLE}
  </style>
  ${shapes.join('\n  ')}
</svg>
`;
}

/** Returns the texts of all drawings by file name. */
export function drawingFiles() {
  return new Map(Object.entries(drawings).map(([name, drawing]) => [`${name}.svg`, svgOf(drawing)]));
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const folder = join(fileURLToPath(new URL('..', import.meta.url)), 'docs/pictures');
  mkdirSync(folder, { recursive: true });
  for (const [name, text] of drawingFiles()) writeFileSync(join(folder, name), text);
}
