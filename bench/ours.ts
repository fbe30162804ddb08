import type { Peer } from './peer.ts';
export const ours: Peer = {
  name: 'rdma-rpc',
  fabric: 'shm',
  serve: () => Promise.reject(new Error('soon')),
  connect: () => Promise.reject(new Error('soon')),
};
