/**
 * Tests that calls leave nothing behind, for buffers that the registration cache never takes. See
 * registrations.ts for the test itself.
 */
import { configure } from 'rdma-rpc';
import { nothingStays } from './registrations.ts';

configure({ mrCacheBytes: 0 });

nothingStays(0);
