/**
 * Makes the pictures of the README: `rdma-rpc top` as a terminal shows it (an SVG whose text can be
 * selected), and the page that `rdma-rpc bench` writes. Both show the example examples/kv under load. The
 * script needs tmux and Chromium, and is not part of the package.
 *
 *   node scripts/pictures.mjs        after npm run setup
 */
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { root } from './command.mjs';
import { missing } from './debian.mjs';
import { NOT_RUN } from './results.mjs';

const columns = 110;
const rows = 34;
const load = '12s';
const watchedMs = 6000;
const letter = { width: 7.8, height: 17 };
const margin = 14;
const folder = mkdtempSync(join(tmpdir(), 'rdma-rpc-pictures-'));
const pictures = join(root, 'pictures');

const lacking = [...missing('terminal'), ...missing('browser')];
if (lacking.length > 0) {
  console.log(`not run: missing Debian packages: ${lacking.join(', ')}`);
  process.exit(NOT_RUN);
}

const escaped = (text) => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;');

/** Draws a light terminal. Each line is one text, with its spaces, so that it can be selected and copied. */
function svgOf(screen) {
  const lines = screen.trimEnd().split('\n');
  const width = Math.ceil(columns * letter.width + 2 * margin);
  const height = Math.ceil(lines.length * letter.height + 2 * margin);
  const texts = lines.map(
    (line, at) =>
      `<text xml:space="preserve" x="${margin}" y="${margin + (at + 0.75) * letter.height}">${escaped(line.trimEnd())}</text>`,
  );
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}">
<title>rdma-rpc top</title>
<style>text { white-space: pre }</style>
<rect width="${width}" height="${height}" rx="6" fill="#fdfdfb" stroke="#d0d0cc"/>
<g font-family="ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace" font-size="13" fill="#1f2328">
${texts.join('\n')}
</g>
</svg>
`;
}

function cli(...args) {
  return spawn('node', ['dist/cli/main.js', ...args], { cwd: root, stdio: ['ignore', 'ignore', 'inherit'] });
}

/** Returns the screen of `rdma-rpc top` after it has run for a while. */
async function screenOfTop(pid) {
  const socket = join(folder, 'tmux');
  const tmux = (...args) =>
    execFileSync('tmux', ['-S', socket, '-f', '/dev/null', ...args], { encoding: 'utf8', cwd: root });
  const size = ['-x', String(columns), '-y', String(rows)];
  tmux('new-session', '-d', '-s', 'top', ...size, `node dist/cli/main.js top ${pid}`);
  try {
    await setTimeout(watchedMs);
    return tmux('capture-pane', '-p', '-t', 'top');
  } finally {
    tmux('kill-server');
  }
}

async function screenshot(page, to) {
  const { chromium } = await import('playwright-core');
  // Chromium requires this flag for root, and the page is our own.
  const browser = await chromium.launch({ executablePath: '/usr/bin/chromium', args: ['--no-sandbox'] });
  try {
    const shown = await browser.newPage({ viewport: { width: 1180, height: 800 }, colorScheme: 'light' });
    await shown.goto(pathToFileURL(page).href);
    await shown.screenshot({ path: to });
  } finally {
    await browser.close();
  }
}

const server = spawn('node', ['dist/examples/kv/server.js', '127.0.0.1:0'], {
  cwd: root,
  stdio: ['ignore', 'pipe', 'inherit'],
});
try {
  const [said] = await once(server.stdout, 'data');
  const address = String(said).trim().split(' ').at(-1);
  const proto = ['--proto', 'examples/kv/kv.proto'];
  const put = join(folder, 'put.json');
  writeFileSync(put, JSON.stringify({ key: 'large', value: Buffer.alloc(100_000).toString('base64') }));
  const report = join(folder, 'report.html');
  const bench = (method, ...args) =>
    cli('bench', address, `kv.v1.Kv/${method}`, ...proto, '-z', load, ...args);
  await once(cli('call', address, 'kv.v1.Kv/Put', '{"key": "small", "value": "aGVsbG8="}', ...proto), 'exit');
  const loads = [
    bench('Get', '-d', '{"key": "small"}', '-c', '16', '--html', report),
    bench('Put', '-D', put, '-c', '2', '--rps', '500'),
  ].map((each) => once(each, 'exit'));
  const screen = await screenOfTop(server.pid);
  for (const [code] of await Promise.all(loads)) if (code !== 0) throw new Error('the load has failed');
  mkdirSync(pictures, { recursive: true });
  writeFileSync(join(pictures, 'top.svg'), svgOf(screen));
  await screenshot(report, join(pictures, 'bench.png'));
  console.log('pictures/top.svg, pictures/bench.png');
} finally {
  server.kill();
  rmSync(folder, { recursive: true, force: true });
}
