/**
 * Runs a registry on this machine that serves the packages of some folders, so that package managers install
 * a release as they would after its publication. The registry serves only these packages.
 */
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';

export interface Registry {
  readonly url: string;
  close(): void;
}

interface Served {
  readonly manifest: { readonly name: string; readonly version: string };
  readonly tarball: Buffer;
}

/** Packs a folder that has a package.json, and needs no build. */
function packed(folder: string, into: string): Served {
  const manifest = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as Served['manifest'];
  const how = ['pack', '--json', '--ignore-scripts', '--pack-destination', into];
  const [{ filename }] = JSON.parse(execFileSync('npm', how, { cwd: folder, encoding: 'utf8' })) as [
    { filename: string },
  ];
  return { manifest, tarball: readFileSync(join(into, filename)) };
}

/** Serves the packages of these folders. `into` is the folder for their files. */
export async function serveRegistry(folders: readonly string[], into: string): Promise<Registry> {
  const served = new Map(
    folders.map((folder) => packed(folder, into)).map((each) => [each.manifest.name, each]),
  );
  const server = createServer(({ url = '', headers }, response) => {
    const [, path = '', file] = /^\/(.*?)(?:\/-\/(.*))?$/.exec(decodeURIComponent(url)) ?? [];
    const found = served.get(path);
    if (found === undefined) {
      response.writeHead(404, { 'content-type': 'application/json' }).end('{"error":"not found"}');
      return;
    }
    const { manifest, tarball } = found;
    if (file !== undefined) {
      response.writeHead(200, { 'content-type': 'application/octet-stream' }).end(tarball);
      return;
    }
    const { name, version } = manifest;
    const dist = {
      tarball: `http://${headers.host}/${name}/-/${version}.tgz`,
      integrity: `sha512-${createHash('sha512').update(tarball).digest('base64')}`,
      shasum: createHash('sha1').update(tarball).digest('hex'),
    };
    const versions = { [version]: { ...manifest, dist } };
    const packument = { name, 'dist-tags': { latest: version }, versions };
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(packument));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return { url: `http://127.0.0.1:${port}`, close: () => server.close() };
}
