/** No call leaves anything behind: buffers that the registration cache never takes. See registrations.ts. */
import { configure } from 'rdma-rpc';
import { nothingStays } from './registrations.ts';

configure({ mrCacheBytes: 0 });

nothingStays(0);
