/** No call leaves anything behind: buffers that the registration cache keeps. See registrations.ts. */
import { configure } from 'rdma-rpc';
import { nothingStays } from './registrations.ts';

configure({ mrCacheEntriesMax: 8 });

nothingStays(8);
