/**
 * Errors of the library name options. The commands name their flags instead, also in texts of older servers.
 */
import { expect, test } from 'vitest';
import { withFlagsNamed } from '../../cli/server/tls-flags.ts';
import { plainRefused, plainRefusedByPsk } from '../../runtime/control/tls/mismatch.ts';

const requiresTls = 'this server requires TLS on host:port addresses: give --ca, --psk-file or --tls';

test.each([
  ['this release', plainRefused],
  ['servers before it', 'this server takes TLS on host:port addresses only: give the channel the option tls'],
  ['older servers', 'this server takes TLS on host:port addresses only (option tls of the channel)'],
])('the text of a server that requires TLS names flags: %s', (_, text) => {
  expect(withFlagsNamed(`the server refused the connection: ${text}`)).toBe(
    `the server refused the connection: ${requiresTls}`,
  );
});

test.each([
  plainRefusedByPsk,
  plainRefusedByPsk.replace('requires TLS on host:port addresses', 'takes TLS on host:port addresses only'),
])('the text of a server with a pre-shared key names the flag: %s', (text) => {
  const [begin] = text.split(': give the channel');
  expect(withFlagsNamed(text)).toBe(`${begin}: give the file of such a key (--psk-file)`);
});

test.each([
  ['this release', 'this server accepts only clients'],
  ['servers before it', 'this server takes clients'],
])('the text of a server that requires a certificate names the flags: %s', (_, begin) => {
  const text = `${begin} with a certificate that it trusts (option tls of the channel)`;
  expect(withFlagsNamed(text)).toMatch(/: --cert and --key, signed by an authority that it has/);
});
