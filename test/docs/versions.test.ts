/**
 * Compares the versions that docs/deploy/upgrading.md and docs/wire/connections.md name with the sources.
 */
import { expect, test } from 'vitest';
import { traceVersion } from '../../runtime/boundary/traces/trace-file.ts';
import { feature, version } from '../../runtime/control/frames.ts';
import { pageVersion } from '../../runtime/counters/page.ts';
import { fabricNames, fabrics } from '../../runtime/fabrics.ts';
import { handoverVersion } from '../../runtime/workers/messages.ts';
import { read } from '../house/tree.ts';
import { namesIn, pageOf, tableOf } from './document.ts';

const rows = tableOf(pageOf('deploy/upgrading'), 'versions').map(([what = '', now]) => [what, now]);

test('each version of the table is that of the code', () => {
  expect(Object.fromEntries(rows)).toEqual({
    'Wire version': String(version),
    'Feature bits': `${Object.keys(feature).length} bits`,
    'Fabrics `shm`, `shm-fd`': String(fabrics.shm.version),
    'Fabric `tcp`': String(fabrics.tcp.version),
    'Fabric `verbs`': String(fabrics.verbs.version),
    'Connect message': /kConnectVersion = (\d+);/.exec(read('native/fabric/versions.h'))?.[1],
    Handover: String(handoverVersion),
    'Counters page': String(pageVersion),
    'Trace file': String(traceVersion),
    'Generated code': 'v1',
  });
  expect(fabrics['shm-fd'].version).toBe(fabrics.shm.version);
});

test('each feature bit is in the table of the wire, with its name', () => {
  const bits = tableOf(pageOf('wire/connections'), 'features').map(([bit, name]) => [name, Number(bit)]);
  expect(Object.fromEntries(bits)).toEqual(feature);
});

test('each fabric has its version in the text of the wire', () => {
  const [, text = ''] =
    /`version` of what its queue pairs exchange below the frames: (.*?)\. When/s.exec(
      pageOf('wire/connections').replaceAll(/\s+/g, ' '),
    ) ?? [];
  const named = text
    .split(', ')
    .flatMap((part) => namesIn(part).map((name) => [name, Number(/\d+$/.exec(part)?.[0])]));
  const expected = fabricNames.map((name) => [name, fabrics[name].version]);
  expect(Object.fromEntries(named)).toEqual(Object.fromEntries(expected));
});
