/**
 * Tests the names under which the files of our own services are registered. A user may have a file of any
 * other name, and reflection serves one file for each name.
 */
import { expect, test } from 'vitest';
import { TunnelsDefinition } from '../../cli/tunnel/gen/rdma_rpc/tunnel.rdma.ts';
import { ReverseDefinition } from '../../runtime/reverse/gen/rdma_rpc/reverse.rdma.ts';
import { SocketsDefinition } from '../../runtime/socket/gen/rdma_rpc/socket.rdma.ts';

test.each([
  ['reverse', ReverseDefinition],
  ['socket', SocketsDefinition],
  ['tunnel', TunnelsDefinition],
])('%s.proto is in the folder of the package', (name, { file }) => {
  expect(file.name).toBe(`rdma_rpc/${name}.proto`);
});
