/**
 * The error texts for two sides that do not identify themselves in the same way. A side uses certificates, a
 * pre-shared key (psk), or no TLS at all. Each text says what both sides use, and what to change. The command
 * line replaces the options by its flags. Both sides of TLS and the links of a server use this file.
 */

/** The server's text for a client without TLS, when the server has a certificate. */
export const plainRefused =
  'this server requires TLS on host:port addresses: give the channel the option tls';

/** The server's text for a client without TLS, when the server has pre-shared keys. */
export const plainRefusedByPsk =
  'this server requires TLS on host:port addresses, with a pre-shared key: give the channel such a key (option tls: psk of the channel)';

/** The client's text for a server without TLS, when the client expects a certificate. */
export const noTls =
  'the server does not speak TLS at this address: give the server the option tls, or leave it out of this channel';

/** The client's text for a server without TLS, when the client has a pre-shared key. */
export const noTlsForPsk =
  'the server does not speak TLS at this address, but this channel has a pre-shared key: give the server the same key in its option tls, or leave it out of this channel (option tls: psk of the channel)';

/** The client's text when it has a pre-shared key and the server has shown a certificate. */
export const certificateForPsk =
  'the server has a certificate, but this channel has a pre-shared key: give the server the same key in place of the certificate, or give the channel the authority of the certificate (ca) in place of the key (option tls: psk of the channel)';

/**
 * The client's text for a TLS alert of the server, when the client expects a certificate. A server with
 * pre-shared keys sends the same alert as servers with some other mistakes.
 */
export const refusedCertificate =
  'the server refused the TLS handshake, because it may have a pre-shared key while this channel expects a certificate: give the channel the same key (option tls: psk), or give the server a cert and a key in place of psk; the log of the server may say why';

/**
 * This text is added to the server's log line when a client has used none of the server's pre-shared keys.
 */
export const noPskUsed =
  'the client has used no pre-shared key, but this server has nothing else (option tls: psk of the server)';
