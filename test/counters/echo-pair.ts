/** Opens a channel and an echo server of this process, whose counters the tests of this folder read. */
import { echoHandlers } from '../runtime/echo-service.ts';
import { EchoDefinition } from '../runtime/gen/echo.rdma.ts';
import { openPair, type Pair, type PairWay } from '../runtime/pair.ts';

export function echoPair(way: PairWay): Promise<Pair> {
  return openPair(way, (server) => server.add(EchoDefinition, echoHandlers({ started: 0, aborted: [] })));
}
