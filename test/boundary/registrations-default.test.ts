/**
 * Tests that calls leave nothing behind, for buffers that the registration cache keeps. See registrations.ts
 * for the test itself.
 */
import { configure } from 'rdma-rpc';
import { nothingStays } from './registrations.ts';

configure({ mrCacheEntriesMax: 8 });

nothingStays(8);
