/** No call leaves anything behind: buffers that are copied through staging memory. See registrations.ts. */
import { configure } from 'rdma-rpc';
import { nothingStays } from './registrations.ts';

configure({ exposure: 'staging' });

nothingStays(256);
