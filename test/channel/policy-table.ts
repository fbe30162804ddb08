/**
 * Lists the policies and the servers that answer with each of them, for the tests of policies with events.
 */
import type { ChannelOptions, ServerAddress } from 'rdma-rpc';
import { HashRing } from '../../runtime/client/balancing/hash-ring.ts';
import { hashOfText } from '../../runtime/client/balancing/key-hash.ts';

export const addresses = ['a:1', 'b:1', 'c:1'] as const;
const [a, b, c] = addresses;

/** Returns a key whose server is `a`, or `b` while `a` is away. */
function valueOfA(): string {
  const ownerOf = (list: readonly string[], value: string): string => {
    const ring = new HashRing(list.map((address) => ({ address, weight: 1 })));
    return list[ring.ownerAt(ring.positionOf(hashOfText(value)))]!;
  };
  for (let i = 0; ; ++i) if (ownerOf(addresses, `${i}`) === a && ownerOf([b, c], `${i}`) === b) return `${i}`;
}
export const metadata = { 'user-id': valueOfA() };

export interface Row {
  /** True when the policy uses zones, so that zones must be configured. */
  readonly servers?: readonly ServerAddress[];
  readonly options: ChannelOptions;
  /** The servers of nine calls that are made one after another. */
  readonly all: string;
  /** The servers of these calls when `a` takes no calls. */
  readonly withoutA: string;
  /**
   * The servers that answer two calls: a call that is retried when `a` fails, and a call that is hedged when
   * `a` hangs.
   */
  readonly retried: string;
  readonly hedged: string;
}

export const policies: readonly [string, Row][] = [
  [
    'round-robin',
    { options: { loadBalancing: 'round-robin' }, all: 'abc', withoutA: 'bc', retried: 'bc', hedged: 'bc' },
  ],
  [
    'least-request',
    { options: { loadBalancing: 'least-request' }, all: 'abc', withoutA: 'bc', retried: 'bc', hedged: 'bc' },
  ],
  // The list is tried in order when the connection is lost. When a server answers with an error, its
  // connection is healthy, so the call is not tried at another server.
  [
    'pick-first',
    { options: { loadBalancing: 'pick-first' }, all: 'a', withoutA: 'b', retried: '', hedged: '' },
  ],
  // Repeated calls go to the same server until it is ejected or has more than its share of the calls in
  // flight.
  [
    'consistent-hash',
    {
      options: { loadBalancing: 'consistent-hash', consistentHash: { metadataKey: 'User-Id' } },
      all: 'a',
      withoutA: 'b',
      retried: '',
      hedged: 'b',
    },
  ],
  [
    'weighted-round-robin',
    {
      options: { loadBalancing: 'weighted-round-robin' },
      all: 'abc',
      withoutA: 'bc',
      retried: 'bc',
      hedged: 'bc',
    },
  ],
  // Repeated calls stay in the zone, which has one server.
  [
    'round-robin in a zone',
    {
      servers: addresses.map((address) => ({ address, zone: address === a ? 'near' : 'far' })),
      options: { zone: 'near', loadBalancing: 'round-robin' },
      all: 'a',
      withoutA: 'bc',
      retried: '',
      hedged: '',
    },
  ],
];

/** Returns the list of a policy's channel. */
export const serversOf = ({ servers }: Row): readonly (string | ServerAddress)[] => servers ?? addresses;
