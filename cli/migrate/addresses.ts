/**
 * Converts addresses in the form of gRPC libraries. The rules of each library use this file.
 */
import { Node } from 'ts-morph';

/**
 * Returns the source text of the address for this package, or the reason why it cannot be converted. `text`
 * is the rendered text of the argument. An argument that is not a literal is kept.
 */
export function addressOf(argument: Node, text: string): { text: string } | { why: string } {
  if (!Node.isStringLiteral(argument) && !Node.isNoSubstitutionTemplateLiteral(argument)) {
    const template = Node.isTemplateExpression(argument) ? argument.getHead().getLiteralText() : '';
    if (/^https:/.test(template)) return { why: secured };
    return { text: /^http:\/\//.test(template) ? text.replace('http://', '') : text };
  }
  const address = argument.getLiteralText();
  if (/^https:/.test(address)) return { why: secured };
  const plain = address.replace(/^http:\/\//, '').replace(/\/$/, '');
  if (/^(ipv4|ipv6|xds):/.test(plain))
    return { why: `the address ${address} has a scheme that is not known here` };
  if (!/^(unix:|dns:)/.test(plain) && !/:\d+$/.test(plain))
    return { why: `the address ${address} has no port` };
  return { text: JSON.stringify(plain).replaceAll('"', "'") };
}

const secured = 'TLS: give createChannel the option tls';
