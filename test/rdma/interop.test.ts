/**
 * Runs gRPC's interoperability cases between two RDMA devices (test/interop/interop.test.ts has the other
 * fabrics).
 */
import { afterEach } from 'vitest';
import { openProcesses } from '../interop/peer.ts';
import { interopSuite } from '../interop/suite.ts';
import { clientDevice, endAll, over, patient, serverDevice } from './pair.ts';

afterEach(endAll);

interopSuite('two RDMA devices', 'verbs', () =>
  openProcesses(undefined, over(serverDevice), patient(over(clientDevice))),
);
