/** The API server of a test, and a resolver of the service `greeter` that asks it. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type EndpointSlicesOptions, endpointSlices } from 'rdma-rpc/kubernetes';
import { beforeEach } from 'vitest';
import { ends } from '../security/ends.ts';
import { ApiServer } from './api-server.ts';
import { afterwards } from './bed.ts';

export let api: ApiServer;
export let tokenFile: string;
beforeEach(async () => {
  tokenFile = join(ends.folder, 'token');
  writeFileSync(tokenFile, 'first\n');
  api = await new ApiServer().start();
  afterwards(() => api.stop());
});

export const resolver = (options: Partial<EndpointSlicesOptions> = {}) =>
  endpointSlices({
    service: 'greeter',
    namespace: 'shop',
    server: api.url,
    ca: api.authority.ca,
    tokenFile,
    ...options,
  });
