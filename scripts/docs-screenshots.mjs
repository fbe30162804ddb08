/**
 * Takes pictures of pages of the built site in Chromium, light and dark, at the width of a phone and of a
 * desk. The pictures go to build/site-screenshots, for people to look at. A page that is wider than the
 * screen is an error, because readers would have to scroll it sideways. docs.mjs calls these functions.
 */
import { createReadStream, existsSync, mkdirSync, statSync } from 'node:fs';
import { createServer } from 'node:http';
import { extname, join } from 'node:path';
import { root } from './command.mjs';
import { missing } from './debian.mjs';
import { NOT_RUN } from './results.mjs';

const SIZES = { phone: { width: 390, height: 844 }, desk: { width: 1280, height: 900 } };
const SHOWN = [
  '',
  'start/quick-start/',
  'concepts/how-it-works/',
  'reference/options/',
  'guides/streams/',
  'reference/api/',
];
const TYPES = {
  '.html': 'text/html; charset=utf-8',
  '.css': 'text/css',
  '.js': 'text/javascript',
  '.svg': 'image/svg+xml',
  '.json': 'application/json',
};

/** Serves the folder over HTTP, because a browser needs that. Resolves to the server's address. */
function serve(folder, base) {
  const server = createServer((request, response) => {
    const path = decodeURI(new URL(request.url, 'http://site').pathname).slice(base.length);
    let file = join(folder, path);
    if (existsSync(file) && statSync(file).isDirectory()) file = join(file, 'index.html');
    if (!existsSync(file)) return void response.writeHead(404).end();
    response.writeHead(200, { 'content-type': TYPES[extname(file)] ?? 'application/octet-stream' });
    createReadStream(file).pipe(response);
  });
  return new Promise((resolve) => {
    server.listen(0, '127.0.0.1', () => resolve({ server, port: server.address().port }));
  });
}

export async function screenshots(folder, base) {
  const lacking = missing('browser');
  if (lacking.length > 0) {
    console.log(`screenshots not taken: missing Debian packages: ${lacking.join(', ')}`);
    process.exitCode = NOT_RUN;
    return;
  }
  const { chromium } = await import('playwright-core');
  const to = join(root, 'build', 'site-screenshots');
  mkdirSync(to, { recursive: true });
  const { server, port } = await serve(folder, base);
  // Chromium requires this flag for root, and the pages are our own.
  const browser = await chromium.launch({ executablePath: '/usr/bin/chromium', args: ['--no-sandbox'] });
  const wide = [];
  try {
    for (const [size, viewport] of Object.entries(SIZES)) {
      for (const colorScheme of ['light', 'dark']) {
        const page = await browser.newPage({ viewport, colorScheme });
        for (const path of SHOWN) {
          await page.goto(`http://127.0.0.1:${port}${base}${path}`);
          const width = await page.evaluate(() => document.documentElement.scrollWidth);
          if (width > viewport.width) wide.push(`${path} is ${width} px wide on a ${size}`);
          const name = `${path.replaceAll('/', '-') || 'index-'}${size}-${colorScheme}.png`;
          await page.screenshot({ path: join(to, name) });
        }
        await page.close();
      }
    }
  } finally {
    await browser.close();
    server.close();
  }
  if (wide.length > 0) throw new Error(wide.join('\n'));
  console.log(`build/site-screenshots: ${SHOWN.length} pages, phone and desk, light and dark`);
}
