/** Tests that `endpointSlices` refuses unusable options by name. */
import { endpointSlices } from 'rdma-rpc/kubernetes';
import { expect, test } from 'vitest';

test.each<[object, RegExp]>([
  [{}, /service: "" is no name of Kubernetes/],
  [{ service: 'a/b' }, /service: "a\/b" is no name/],
  [{ service: 'a', namespace: '../b' }, /namespace: "..\/b" is no name/],
  [{ service: 'a', namespace: 'b' }, /not in a pod; give the option kubeConfig/],
  [{ service: 'a', namespace: 'b', server: 'http://a' }, /server: http:\/\/a is not https/],
  [{ service: 'a', namespace: 'b', port: 0 }, /port: 0 is neither a name nor a number/],
  [{ service: 'a', namespace: 'b', kubeConfig: {} }, /kubeConfig is no KubeConfig/],
  [{ service: 'a', namespace: 'b', watch: true }, /there is no option watch/],
])('options that cannot be used: %j', (options, reason) => {
  expect(() => endpointSlices(options as never)).toThrow(reason);
});
