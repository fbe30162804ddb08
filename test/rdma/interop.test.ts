/** gRPC's interoperability cases between two RDMA devices (test/interop/interop.test.ts has the other fabrics). */
import { openProcesses } from '../interop/peer.ts';
import { interopSuite } from '../interop/suite.ts';
import { clientDevice, over, serverDevice } from './pair.ts';

interopSuite('two RDMA devices', 'verbs', () =>
  openProcesses(undefined, over(serverDevice), { ...over(clientDevice), connectTimeoutMs: 60_000 }),
);
