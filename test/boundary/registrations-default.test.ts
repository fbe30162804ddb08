/**
 * Tests that calls leave no memory behind when the registration cache keeps their buffers. See
 * registrations.ts for the test itself.
 */
import { configure } from 'rdma-rpc';
import { nothingStays } from './registrations.ts';

configure({ mrCacheEntriesMax: 8 });

nothingStays(8);
