/** The messages that are measured, in the form that each peer takes. Called by main.ts. */
import { Blob, Medium, type MediumInit, Small, State, Tiny, type TinyInit } from './gen/codec.rdma.ts';

const tiny: TinyInit = { id: 12_345, delta: -1, sequence: 42n, name: 'abc' };

const medium: MediumInit = {
  id: 'ord-2026-000123',
  title: 'Spare parts',
  description: 'Two boxes of bolts, one of nuts',
  version: 7,
  createdMs: 1_790_000_000_000n,
  updatedMs: 1_790_000_123_456n,
  price: 129.95,
  weight: 2.5,
  active: true,
  state: State.STATE_OPEN,
  from: { street: 'Harbour Road 12', city: 'Rotterdam', zip: 3011, country: 'NL' },
  to: { street: 'Station Square 1', city: 'Antwerp', zip: 2018, country: 'BE' },
  tags: ['metal', 'heavy', 'express'],
  counts: [1, 20, 300, 4000],
  labels: { team: 'blue', region: 'eu-west', tier: 'gold' },
  balance: -250,
  checksum: 0x0123_4567_89ab_cdefn,
  note: 'Ring twice',
  digest: new Uint8Array(32).fill(7),
  owner: 99n,
};

const bytes = (length: number) => ({ value: new Uint8Array(length).map((_, i) => i) });

export const cases = [
  { name: 'tiny', type: Tiny, message: tiny },
  { name: 'medium', type: Medium, message: medium },
  { name: 'bytes 32', type: Small, message: bytes(32) },
  { name: 'bytes 4 KiB', type: Blob, message: bytes(4096) },
] as const;
