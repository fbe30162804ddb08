/**
 * The ways in which payloads travelled, in words. They are rows of the demo's second table, made from the
 * runtime's own counters of both processes.
 */

/** The counters that the table shows, by their names in `stats()`. */
export type Counters = Readonly<Record<string, number>>;

export interface TravelRow {
  way: string;
  client: number;
  server: number;
}

const ways: readonly { way: string; counter: string }[] = [
  { way: 'messages inline in a SEND', counter: 'inlineSends' },
  { way: 'messages in one SEND from a registered slot (eager)', counter: 'eagerSends' },
  { way: 'bulk: READs by the server', counter: 'bulkReads' },
  { way: 'bulk: bytes READ', counter: 'bulkReadBytes' },
  { way: 'bulk: WRITEs by the server', counter: 'bulkWrites' },
  { way: 'bulk: bytes WRITten', counter: 'bulkWriteBytes' },
  { way: 'answers granted memory in advance', counter: 'replyBuffersPredicted' },
  { way: 'answers that had to ask for memory', counter: 'replyBuffersAsked' },
  { way: 'registration cache: hits', counter: 'mrHits' },
  { way: 'registration cache: misses', counter: 'mrMisses' },
  { way: 'registration cache: evictions', counter: 'mrEvictions' },
  { way: 'sleeps (nothing to do)', counter: 'sleeps' },
];

export function travelRows(client: Counters, server: Counters): TravelRow[] {
  return ways.map(({ way, counter }) => ({
    way,
    client: client[counter] ?? 0,
    server: server[counter] ?? 0,
  }));
}
