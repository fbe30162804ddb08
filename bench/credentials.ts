/**
 * The certificates of one pair of processes, in files that only this pair uses. The orchestrator creates and
 * removes them.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Authority } from '../test/security/certificates.ts';

export class Credentials {
  readonly folder: string = mkdtempSync(join(tmpdir(), 'rdma-rpc-bench-tls-'));

  constructor() {
    const authority = new Authority();
    const { cert, key } = authority.issue({ names: ['localhost'], addresses: ['127.0.0.1'] });
    for (const [name, text] of Object.entries({ ca: authority.ca, cert, key }))
      writeFileSync(join(this.folder, `${name}.pem`), text, { mode: 0o600 });
  }

  remove(): void {
    rmSync(this.folder, { recursive: true, force: true });
  }
}
