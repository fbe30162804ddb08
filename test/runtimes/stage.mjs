/**
 * Makes a folder of the application in app/ as a user has it, with its generated code and with the package
 * installed.
 */
import { copyFileSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../../scripts/command.mjs';

/**
 * Installs this checkout in `folder`. Deno searches node_modules only for packages that a package.json names.
 */
export function installIn(folder) {
  mkdirSync(join(folder, 'node_modules'), { recursive: true });
  const manifest = { name: 'app', private: true, dependencies: { 'rdma-rpc': '*' } };
  writeFileSync(join(folder, 'package.json'), JSON.stringify(manifest));
  symlinkSync(root, join(folder, 'node_modules/rdma-rpc'));
}

/** Returns the paths of main and worker. */
export function stage(folder) {
  installIn(folder);
  copyFileSync(join(root, 'dist/examples/hello/gen/greeter.rdma.js'), join(folder, 'greeter.rdma.js'));
  return ['main', 'worker'].map((name) => {
    copyFileSync(join(root, `test/runtimes/app/${name}.mjs`), join(folder, `${name}.mjs`));
    return join(folder, `${name}.mjs`);
  });
}
