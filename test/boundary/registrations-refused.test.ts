/**
 * Tests that calls leave no memory behind when the registration cache never takes their buffers. See
 * registrations.ts for the test itself.
 */
import { configure } from 'rdma-rpc';
import { nothingStays } from './registrations.ts';

configure({ mrCacheBytes: 0 });

nothingStays(0);
