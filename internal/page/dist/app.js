// Made by go generate from internal/page/src, and from Preact (MIT, see internal/page/preact/LICENSE).

// preact/preact.mjs
var n;
var t;
var r;
var u;
var i;
var f;
var o;
var e;
var l;
var c;
var a;
var s;
var h = /* @__PURE__ */ Symbol.for("pv");
var p = {};
var y = [];
var v = /^m(i|n|o|s|text|space)$/;
var w = Array.isArray;
var d = y.slice;
var _ = Object.assign;
function g(n2) {
  n2 && n2.parentNode && n2.remove();
}
function m(r3, u3, i3, f4, o4) {
  var e3 = { type: r3, props: u3, key: i3, ref: f4, __k: null, __: null, __b: 0, __e: null, __c: null, constructor: h, __v: o4 || ++t, __i: -1, __u: 0 };
  return !o4 && n.vnode && n.vnode(e3), e3;
}
function $(n2) {
  return n2.children;
}
function x(n2, t3) {
  this.props = n2, this.context = t3, this.__g = 0;
}
function S(n2, t3) {
  if (null == t3) return n2.__ && S(n2.__, n2.__i + 1);
  for (var r3; t3 < n2.__k.length; t3++) if ((r3 = n2.__k[t3]) && r3.__e) return r3.__e;
  return "function" != typeof n2.type || n2.props.__P ? null : S(n2);
}
function C(t3) {
  var r3, u3 = t3.__v, i3 = u3.__e, f4 = [], o4 = [], e3 = t3.__P;
  e3 && ((r3 = _({ constructor: h }, u3)).__v = u3.__v + 1, n.vnode && n.vnode(r3), z(e3, r3, u3, t3.__n, e3.namespaceURI, 32 & u3.__u ? [i3] : null, f4, i3 || S(u3), 32 & u3.__u, o4), r3.__v = u3.__v, r3.__.__k[r3.__i] = r3, E(f4, r3, o4), u3.__ = u3.__e = null, r3.__e != i3 && j(r3));
}
function j(n2) {
  if ((n2 = n2.__) && n2.__c && !n2.props.__P) return n2.__e = null, n2.__k.some(function(t3) {
    return t3 && (n2.__e = t3.__e);
  }), j(n2);
}
function L(t3) {
  (8 & t3.__g || (t3.__g |= 8, u.push(t3), f++)) && i == n.debounceRendering || ((i = n.debounceRendering) || queueMicrotask)(H);
}
function H() {
  try {
    for (var n2, t3 = 1; u.length; ) u.length > t3 && u.sort(o), n2 = u.shift(), t3 = u.length, 8 & n2.__g && C(n2);
  } finally {
    (f = u.length) && (i || queueMicrotask)(H);
  }
}
function I(n2, t3, r3, u3, i3, f4, o4, e3, l3, c3, a4) {
  var s3, h3, v3, w3, d3, _3, g3 = u3.__k || y, k2 = t3.length;
  for (l3 = q(r3, t3, g3, l3, k2), s3 = 0; s3 < k2; s3++) null != (v3 = r3.__k[s3]) && (h3 = ~v3.__i && g3[v3.__i] || p, v3.__i = s3, _3 = z(n2, v3, h3, i3, f4, o4, e3, l3, c3, a4), w3 = v3.__e, (h3.ref != v3.ref || 8 & h3.__u) && (h3.ref && G(h3.ref, null, v3, h3), v3.ref && a4.push(v3.ref, v3.__c || w3, v3)), d3 = d3 || w3, 4 & v3.__u ? (l3 = A(v3, l3, n2, !h3.__v), h3.__e && (h3.__e = null)) : "function" == typeof v3.type && void 0 !== _3 ? l3 = _3 : w3 && (l3 = w3.nextSibling), v3.__u &= -21);
  return r3.__e = d3, l3;
}
function q(n2, t3, r3, u3, i3) {
  var f4, o4, e3, l3, c3, a4, s3, p3, y3, v3 = r3.length, d3 = v3, _3 = 0, g3 = 0, k2 = n2.__k = Array(i3);
  for (f4 = 0; f4 < i3; f4++) null != (o4 = t3[f4]) && "boolean" != typeof o4 && "function" != typeof o4 ? ("object" != typeof o4 || o4.constructor === String ? o4 = k2[f4] = m(null, o4) : w(o4) ? o4 = k2[f4] = m($, { children: o4 }) : o4.constructor === h && o4.__b ? o4 = k2[f4] = m(o4.type, o4.props, o4.key, o4.ref, o4.__v) : k2[f4] = o4, l3 = f4 + _3, o4.__ = n2, o4.__b = n2.__b + 1, e3 = null, ~(c3 = o4.__i = P(o4, r3, l3, d3)) && (d3--, (e3 = r3[c3]) && (e3.__u |= 2)), e3 && e3.__v ? (o4.__u |= 16, c3 == l3 - 1 ? _3-- : c3 == l3 + 1 ? _3++ : c3 != l3 && (c3 > l3 ? _3-- : _3++, g3 = 1)) : (~c3 || (i3 > v3 ? _3-- : i3 < v3 && _3++), "function" != typeof o4.type && (o4.__u |= 4))) : k2[f4] = null;
  if (g3) {
    for (a4 = [], s3 = [], f4 = 0; f4 < i3; f4++) if ((o4 = k2[f4]) && 16 & o4.__u) {
      for (_3 = 0, p3 = a4.length; _3 < p3; ) a4[y3 = _3 + p3 >> 1] < o4.__i ? _3 = y3 + 1 : p3 = y3;
      a4[_3] = o4.__i, s3[f4] = _3 + 1;
    }
    for (_3 = a4.length; f4--; ) s3[f4] && (s3[f4] == _3 ? _3-- : k2[f4].__u |= 4);
  }
  if (d3) for (f4 = 0; f4 < v3; f4++) !(e3 = r3[f4]) || 2 & e3.__u || (e3.__e == u3 && (u3 = S(e3)), J(e3, e3));
  return u3;
}
function A(n2, t3, r3, u3) {
  var i3, f4, o4, e3;
  if ("function" == typeof n2.type) {
    if (n2.props.__P) return t3;
    if (i3 = n2.__k) for (f4 = 0; f4 < i3.length; f4++) i3[f4] && (i3[f4].__ = n2, t3 = A(i3[f4], t3, r3, false));
    return t3;
  }
  for (t3 && !t3.parentNode && (t3 = S(n2)) && !t3.parentNode && (t3 = null), o4 = n2.__e, e3 = t3; e3 && 8 == e3.nodeType; ) e3 = e3.nextSibling;
  for (o4 != e3 && (!u3 && r3.moveBefore && o4.parentNode ? r3.moveBefore(o4, t3) : r3.insertBefore(o4, t3 || null)), t3 = o4; (t3 = t3 && t3.nextSibling) && 8 == t3.nodeType && !t3.data.startsWith("$s"); ) ;
  return t3;
}
function P(n2, t3, r3, u3) {
  var i3, f4 = n2.key, o4 = n2.type, e3 = t3[r3], l3 = e3 && !(2 & e3.__u);
  if (null === e3 && null == f4 || l3 && f4 == e3.key && o4 == e3.type) return r3;
  if (u3 > (l3 ? 1 : 0)) {
    for (i3 = r3 - 1; i3 >= 0; i3--) if ((e3 = t3[i3]) && !(2 & e3.__u) && f4 == e3.key && o4 == e3.type) return i3;
    for (i3 = r3 + 1; i3 < t3.length; i3++) if ((e3 = t3[i3]) && !(2 & e3.__u) && f4 == e3.key && o4 == e3.type) return i3;
  }
  return -1;
}
function T(n2, t3, r3) {
  null == r3 && (r3 = ""), "-" == t3[0] ? n2.setProperty(t3, r3) : n2[t3] = r3;
}
function N(n2, t3, r3, u3, i3) {
  var f4, o4;
  if ("style" == t3) if ("string" == typeof r3) n2.style.cssText = r3;
  else {
    if ("string" == typeof u3 && (n2.style.cssText = u3 = ""), u3) for (t3 in u3) r3 && t3 in r3 || T(n2.style, t3);
    if (r3) for (t3 in r3) u3 && r3[t3] == u3[t3] || T(n2.style, t3, r3[t3]);
  }
  else if ("o" == t3[0] && "n" == t3[1]) "function" != typeof r3 && (r3 = null), "function" != typeof u3 && (u3 = null), (n2.__e || (n2.__e = {}))[t3] = r3, r3 && u3 || (o4 = a[t3] || (a[t3] = V(t3)), (n2.__a || (n2.__a = {}))[t3] = c, f4 = t3 != (t3 = t3.replace(l, "$1")), (t3 = t3.slice(2))[0] < "a" && (t3 = t3.toLowerCase()), r3 ? n2.addEventListener(t3, o4, f4) : n2.removeEventListener(t3, o4, f4));
  else {
    if ("http://www.w3.org/2000/svg" == i3) t3 = t3.replace(/xlink(H|:h)/, "h").replace(/sName$/, "s");
    else if ("width" != t3 && "height" != t3 && "href" != t3 && "list" != t3 && "form" != t3 && "tabIndex" != t3 && "download" != t3 && "rowSpan" != t3 && "colSpan" != t3 && "role" != t3 && "popover" != t3 && t3 in n2) try {
      return void (n2[t3] = null == r3 ? "" : r3);
    } catch (n3) {
    }
    if ("function" == typeof r3) return;
    null == r3 || false === r3 && "-" != t3[4] ? n2.removeAttribute(t3) : n2.setAttribute(t3, "popover" == t3 && 1 == r3 ? "" : r3);
  }
}
function V(t3) {
  return function(r3) {
    var u3 = this.__e;
    if (u3) {
      if (u3 = u3[t3], null == r3[e]) r3[e] = c++;
      else if (r3[e] < this.__a[t3]) return;
      return u3(n.event ? n.event(r3) : r3);
    }
  };
}
function z(t3, r3, u3, i3, f4, o4, e3, l3, c3, a4) {
  var s3, p3, v3, d3, k2, b, m3, M, C3, j2, L2, H2, q2, A3, O, P2, T3, N2, V2 = r3.type;
  if (r3.constructor !== h) return null;
  128 & u3.__u && (c3 = 32 & u3.__u, s3 = u3.__c.__z) && (r3.__u |= c3, p3 = o4 = [], 8 == s3.nodeType ? l3 = B(s3, o4) : o4.push(s3), l3 = o4[0] || l3), (s3 = n.__b) && s3(r3);
  n: if ("function" == typeof V2) {
    v3 = e3.length;
    try {
      if (M = r3.props, C3 = (s3 = V2.prototype) && s3.render, j2 = (s3 = V2.contextType) && i3[s3.__c], L2 = s3 ? j2 ? j2.props.value : s3.__ : i3, (d3 = u3.__c) ? (r3.__c = d3, 2 & d3.__g && (d3.__g |= 1)) : (C3 ? r3.__c = d3 = new V2(M, L2) : (r3.__c = d3 = new x(M, L2), d3.constructor = V2, d3.render = K), j2 && j2.sub(d3), d3.state || (d3.state = {}), d3.__n = i3, d3.__g |= 8, d3.__h = [], d3.__k = []), C3 && (d3.__s || (d3.__s = d3.state), V2.getDerivedStateFromProps && (d3.__s == d3.state && (d3.__s = _({}, d3.__s)), _(d3.__s, V2.getDerivedStateFromProps(M, d3.__s)))), k2 = d3.props, b = d3.state, d3.__v = r3, u3.__c) {
        if (M !== k2 && C3 && !V2.getDerivedStateFromProps && d3.componentWillReceiveProps && d3.componentWillReceiveProps(M, L2), r3.__v == u3.__v && !(8 & d3.__g) || !(4 & d3.__g) && d3.shouldComponentUpdate && false === d3.shouldComponentUpdate(M, d3.__s, L2)) {
          r3.__v != u3.__v && (d3.props = M, d3.state = d3.__s, d3.__g &= -9), r3.__e = u3.__e, r3.__k = u3.__k, r3.__k.some(function(n2) {
            n2 && (n2.__ = r3);
          }), y.push.apply(d3.__h, d3.__k), d3.__k = [], d3.__h.length && e3.push(d3), l3 = S(u3);
          break n;
        }
        d3.componentWillUpdate && d3.componentWillUpdate(M, d3.__s, L2), C3 && d3.componentDidUpdate && d3.__h.push(function() {
          d3.componentDidUpdate(k2, b, m3);
        });
      } else C3 && !V2.getDerivedStateFromProps && d3.componentWillMount && d3.componentWillMount(), C3 && d3.componentDidMount && d3.__h.push(d3.componentDidMount);
      d3.context = L2, d3.props = M, d3.__P = t3, d3.__g &= -5, H2 = n.__r, q2 = C3 ? 25 : 0;
      do {
        d3.__g &= -9, H2 && H2(r3), s3 = d3.render(d3.props, d3.state = d3.__s, d3.context);
      } while (8 & d3.__g && ++q2 < 25);
      C3 && (y.push.apply(d3.__h, d3.__k), d3.__k = []), d3.state = d3.__s, d3.getChildContext && (i3 = _({}, i3, d3.getChildContext())), C3 && u3.__c && d3.getSnapshotBeforeUpdate && (m3 = d3.getSnapshotBeforeUpdate(k2, b)), A3 = s3 && s3.type === $ && null == s3.key ? s3.props.children : s3, M.__P && (s3 = l3, f4 = (t3 = M.__P).namespaceURI, c3 = o4 = null, u3.props && u3.props.__P != t3 && (u3.__k.some(function(n2) {
        n2 && J(n2, n2);
      }), u3.__k = null), l3 = u3.__k ? S(u3, 0) : null), l3 = I(t3, w(A3) ? A3 : [A3], r3, u3, i3, f4, o4, e3, l3, c3, a4), M.__P && (r3.__e = null, l3 = s3), r3.__u &= -161, p3 && p3.some(g), d3.__h.length && e3.push(d3), 1 & d3.__g && (d3.__g &= -4);
    } catch (t4) {
      if (e3.length = v3, r3.__v = null, c3 || o4) if (t4 && t4.then) {
        if (r3.__u |= 128 | c3, o4) {
          for (~(T3 = o4.indexOf(l3 || void 0)) || (T3 = o4.length); (N2 = o4[T3 - 1]) && 8 == N2.nodeType; ) T3--;
          for (; T3 < o4.length; T3++) if (N2 = o4[T3]) if (o4[T3] = null, O) {
            if (N2 == P2) break;
          } else {
            if (8 != N2.nodeType) break;
            N2.data.startsWith("$s") && (P2 = B(O = N2));
          }
        }
        if (!O) {
          for (; l3 && 8 == l3.nodeType && l3.nextSibling; ) l3 = l3.nextSibling;
          O = l3;
        }
        (s3 = B(O = r3.__c.__z || (r3.__c.__z = O))) ? (r3.__e = O, l3 = s3) : r3.__e = l3, l3 = l3 && l3.nextSibling;
      } else o4 && o4.some(g);
      else r3.__e = u3.__e;
      r3.__k || (r3.__k = u3.__k || []), t4 && t4.then || D(r3), n.__e(t4, r3, u3);
    }
  } else l3 = r3.__e = F(u3.__e, r3, u3, i3, f4, o4, e3, c3, a4, t3);
  return (s3 = n.diffed) && s3(r3), l3;
}
function B(n2, t3) {
  if (n2 && 8 == n2.nodeType && n2.data.startsWith("$s")) for (var r3 = 1; n2 = n2.nextSibling; ) {
    if (8 == n2.nodeType) {
      if (n2.data.startsWith("$s")) r3++;
      else if (n2.data.startsWith("/$s") && !--r3) return n2;
    }
    t3 && t3.push(n2);
  }
}
function D(n2) {
  n2 && (n2.__c && (n2.__c.__g |= 4), n2.__k && n2.__k.some(D));
}
function E(t3, r3, u3) {
  for (var i3 = 0; i3 < u3.length; ) G(u3[i3++], u3[i3++], u3[i3++]);
  n.__c && n.__c(r3, t3), t3.some(function(r4) {
    try {
      t3 = r4.__h, r4.__h = [], t3.some(function(n2) {
        n2.call(r4);
      });
    } catch (t4) {
      n.__e(t4, r4.__v);
    }
  });
}
function F(t3, r3, u3, i3, f4, o4, e3, l3, c3, a4) {
  var s3, h3, y3, _3, k2, b, m3, M, $2 = u3.props || p, x2 = r3.props, C3 = r3.type;
  if ("svg" == C3 ? f4 = "http://www.w3.org/2000/svg" : "math" == C3 ? f4 = "http://www.w3.org/1998/Math/MathML" : f4 || (f4 = "http://www.w3.org/1999/xhtml"), o4) {
    for (s3 = 0; s3 < o4.length; s3++) if ((k2 = o4[s3]) && (C3 ? k2.localName == C3 : 3 == k2.nodeType)) {
      t3 = k2, o4[s3] = null;
      break;
    }
  }
  if (!t3) {
    if (M = a4.ownerDocument || document, !C3) return M.createTextNode(x2);
    t3 = M.createElementNS(f4, C3, x2.is ? x2 : a4), l3 && (n.__m && n.__m(r3, o4), l3 = false), o4 = null;
  }
  if (C3) {
    if (a4 = "template" == C3 && t3.content || t3, o4 = "textarea" == C3 && null != x2.defaultValue ? null : o4 && d.call(a4.childNodes), !l3 && o4) for ($2 = {}, s3 = 0; s3 < t3.attributes.length; s3++) $2[(k2 = t3.attributes[s3]).name] = k2.value;
    for (s3 in $2) k2 = $2[s3], "dangerouslySetInnerHTML" == s3 ? y3 = k2 : "children" == s3 || s3 in x2 || "value" == s3 && "defaultValue" in x2 || "checked" == s3 && "defaultChecked" in x2 || N(t3, s3, null, k2, f4);
    for (s3 in x2) k2 = x2[s3], "children" == s3 ? _3 = k2 : "dangerouslySetInnerHTML" == s3 ? h3 = k2 : "value" == s3 ? b = k2 : "checked" == s3 ? m3 = k2 : l3 && "function" != typeof k2 || $2[s3] === k2 || N(t3, s3, k2, $2[s3], f4);
    h3 ? (l3 || y3 && (h3.__html == y3.__html || h3.__html == t3.innerHTML) || (t3.innerHTML = h3.__html), r3.__k = []) : (y3 && (t3.textContent = ""), ("foreignObject" == C3 || "http://www.w3.org/1998/Math/MathML" == f4 && v.test(C3)) && (f4 = "http://www.w3.org/1999/xhtml"), I(a4, w(_3) ? _3 : [_3], r3, u3, i3, f4, o4, e3, o4 ? o4[0] : u3.__k && S(u3, 0), l3, c3), o4 && o4.some(g)), l3 && "textarea" != C3 || (s3 = "value", "progress" == C3 && null == b ? t3.removeAttribute(s3) : null == b || b === t3[s3] && ("progress" != C3 || b) || N(t3, s3, b, $2[s3], f4), s3 = "checked", null != m3 && m3 != t3[s3] && N(t3, s3, m3, $2[s3], f4));
  } else $2 === x2 || l3 && t3.data == x2 || (t3.data = x2);
  return t3;
}
function G(t3, r3, u3, i3) {
  try {
    "function" == typeof t3 ? r3 ? r3.__x = t3(r3) || 1 : i3 && (i3 = i3.__c || i3.__e) && (r3 = i3.__x) && (i3.__x = null, "function" == typeof r3 ? r3() : t3(null)) : t3.current = r3;
  } catch (t4) {
    n.__e(t4, u3);
  }
}
function J(t3, r3, u3) {
  var i3, f4, o4, e3;
  if (n.unmount && n.unmount(t3), !(i3 = t3.ref) || i3.current && i3.current != t3.__e || G(i3, null, r3, t3), i3 = t3.__c) {
    if (i3.componentWillUnmount) try {
      i3.componentWillUnmount();
    } catch (t4) {
      n.__e(t4, r3);
    }
    i3.__P = i3.__n = null;
  }
  if (i3 = t3.__k) for (e3 = 0; e3 < i3.length; e3++) i3[e3] && J(i3[e3], r3, "function" != typeof t3.type || u3 && !t3.props.__P);
  !u3 && (i3 = t3.__c) && (i3 = i3.__z) && (f4 = B(i3, o4 = [])) && (i3 == t3.__e && o4.some(g), g(f4), g(i3)), u3 || g(t3.__e), t3.__e = t3.__c = t3.__ = null;
}
function K(n2, t3, r3) {
  return this.constructor(n2, r3);
}
function Q(t3, r3) {
  var u3, i3, f4, o4;
  n.__ && n.__(t3, r3), 9 == r3.nodeType && (r3 = r3.documentElement), i3 = (u3 = t3 && 32 & t3.__u) ? null : r3.__k, r3.__k = m($, { children: [t3] }), f4 = [], o4 = [], z(r3, r3.__k, i3 || p, p, r3.namespaceURI, i3 ? null : r3.firstChild ? d.call(r3.childNodes) : null, f4, i3 ? i3.__e : r3.firstChild, u3, o4), E(f4, r3.__k, o4), r3.__k.props.children = null;
}
n = { __e: function(n2, t3, r3, u3) {
  for (var i3, o4, e3; t3 = t3.__; ) if ((i3 = t3.__c) && !(1 & i3.__g)) {
    i3.__g |= 4;
    try {
      if ((e3 = (o4 = i3.constructor) && o4.getDerivedStateFromError) && i3.setState(o4.getDerivedStateFromError(n2)), i3.componentDidCatch && (i3.componentDidCatch(n2, u3 || {}), e3 = 1), e3 && 8 & i3.__g) return void (i3.__g |= 2);
    } catch (t4) {
      n2 = t4;
    }
  }
  throw f = 0, n2;
} }, t = 0, r = function(n2) {
  return null != n2 && n2.constructor === h;
}, x.prototype.setState = function(n2, t3) {
  var r3 = this.__s;
  r3 && r3 != this.state || (r3 = this.__s = _({}, this.state)), "function" == typeof n2 && (n2 = n2(_({}, r3), this.props)), n2 && (_(r3, n2), this.__v && (t3 && this.__k.push(t3), L(this)));
}, x.prototype.forceUpdate = function(n2) {
  this.__v && (this.__g |= 4, n2 && this.__h.push(n2), L(this));
}, x.prototype.render = $, u = [], f = 0, o = function(n2, t3) {
  return n2.__v.__b - t3.__v.__b;
}, e = /* @__PURE__ */ Symbol(), l = /(PointerCapture)$|Capture$/i, c = 0, a = {}, s = 0;

// preact/hooks.mjs
var t2;
var r2;
var u2;
var i2;
var o2 = Object.is;
var f2 = 0;
var c2 = [];
var e2 = [];
var a2 = n;
var v2 = a2.__b;
var l2 = a2.__r;
var m2 = a2.diffed;
var h2 = a2.__c;
var s2 = a2.unmount;
var p2 = a2.__;
function y2(n2, t3) {
  a2.__h && a2.__h(r2, n2, f2 || t3), f2 = 0;
  var u3 = r2.__H || (r2.__H = { __: [], __h: [] });
  return n2 >= u3.__.length && u3.__.push({}), u3.__[n2];
}
function d2(n2) {
  return f2 = 1, _2(G2, n2);
}
function _2(n2, u3, i3) {
  var f4 = y2(t2++, 2);
  if (f4.t = n2, !f4.__c && (f4.__ = [i3 ? i3(u3) : G2(void 0, u3), function(n3) {
    var t3 = (f4.__N || f4.__)[0], r3 = f4.t(t3, n3);
    o2(t3, r3) || (f4.__N = [r3, f4.__[1]], f4.__c.setState({}));
  }], f4.__c = r2, !r2.__f)) {
    r2.__f = true;
    var c3 = r2.shouldComponentUpdate;
    r2.shouldComponentUpdate = function(n3, t3, r3) {
      var u4 = this.__H;
      if (!u4) return true;
      var i4 = false, f5 = this.props != n3;
      if (u4.__.some(function(n4) {
        n4.__N && (i4 = true, o2(n4.__[0], n4.__N[0]) || (f5 = true));
      }), c3) {
        var e3 = c3.call(this, n3, t3, r3);
        return i4 ? e3 || f5 : e3;
      }
      return !i4 || f5;
    };
  }
  return f4.__;
}
function A2(n2, u3) {
  var i3 = y2(t2++, 3);
  !a2.__s && E2(i3.__H, u3) && (i3.__P = true, i3.__ = n2, i3.u = u3, r2.__H.__h.push(i3));
}
function F2(n2, u3) {
  var i3 = y2(t2++, 4);
  !a2.__s && E2(i3.__H, u3) && (i3.__P = false, i3.__ = n2, i3.u = u3, r2.__h.push(i3));
}
function T2(n2) {
  return f2 = 5, w2(function() {
    return { current: n2 };
  }, []);
}
function w2(n2, r3) {
  var u3 = y2(t2++, 7);
  return E2(u3.__H, r3) && (u3.__ = n2(), u3.__H = r3), u3.__;
}
function g2() {
  var n2;
  do {
    for (; n2 = e2.shift(); ) try {
      C2(n2);
    } catch (t4) {
      a2.__e(t4, { __: (n2 = n2.__P) && n2.__v });
    }
    for (; n2 = c2.shift(); ) {
      var t3 = n2.__H;
      if (n2.__P && t3) try {
        t3.__h.some(C2), t3.__h.some(D2), t3.__h = [];
      } catch (r3) {
        t3.__h = [], a2.__e(r3, n2.__v);
      }
    }
  } while (e2.length);
}
a2.__b = function(n2) {
  r2 = null, v2 && v2(n2);
}, a2.__ = function(n2, t3) {
  n2 && t3.__k && t3.__k.__m && (n2.__m = t3.__k.__m), p2 && p2(n2, t3);
}, a2.__r = function(n2) {
  l2 && l2(n2), t2 = 0;
  var i3 = (r2 = n2.__c).__H;
  i3 && (u2 == r2 ? r2.__h = [] : (i3.__h.some(C2), i3.__h.some(D2), t2 = 0), i3.__h = [], i3.__.some(function(n3) {
    n3.__N && (n3.__ = n3.__N), n3.u = n3.__N = void 0;
  })), u2 = r2;
}, a2.diffed = function(n2) {
  m2 && m2(n2);
  var t3 = n2.__c;
  t3 && t3.__H && (t3.__H.__h.length && B2(c2.push(t3)), t3.__H.__.some(function(n3) {
    n3.u && (n3.__H = n3.u);
  })), u2 = r2 = null;
}, a2.__c = function(n2, t3) {
  t3.some(function(n3) {
    try {
      n3.__h.some(C2), n3.__h = n3.__h.filter(function(n4) {
        return !n4.__ || D2(n4);
      });
    } catch (t4) {
      n3.__h = [function() {
        throw t4;
      }];
    }
  }), h2 && h2(n2, t3);
}, a2.unmount = function(n2) {
  s2 && s2(n2);
  var t3, r3, u3 = n2.__c;
  u3 && u3.__H && (u3.__H.__.some(function(u4) {
    try {
      if (u4.__P && u4.__c) {
        if (void 0 === r3) {
          for (r3 = n2.__; r3 && (!r3.__c || !r3.__c.__P); ) r3 = r3.__;
          r3 = r3 && r3.__c;
        }
        u4.__P = r3, B2(e2.push(u4));
      } else C2(u4);
    } catch (n3) {
      t3 = n3;
    }
  }), u3.__H = void 0, t3 && a2.__e(t3, u3.__v));
};
var k = "function" == typeof requestAnimationFrame;
function z2(n2) {
  var t3, r3 = function() {
    clearTimeout(u3), k && cancelAnimationFrame(t3), setTimeout(n2);
  }, u3 = setTimeout(r3, 35);
  k && (t3 = requestAnimationFrame(r3));
}
function B2(n2) {
  1 != n2 && i2 == a2.requestAnimationFrame || ((i2 = a2.requestAnimationFrame) || z2)(g2);
}
function C2(n2) {
  var t3 = r2, u3 = n2.__c;
  "function" == typeof u3 && (n2.__c = void 0, u3()), r2 = t3;
}
function D2(n2) {
  var t3 = r2;
  n2.__c = n2.__(), r2 = t3;
}
function E2(n2, t3) {
  return !n2 || n2.length != t3.length || t3.some(function(t4, r3) {
    return !o2(t4, n2[r3]);
  });
}
function G2(n2, t3) {
  return "function" == typeof t3 ? t3(n2) : t3;
}

// src/api.ts
function withInherited(c3) {
  const i3 = c3.inherited;
  if (!i3) return c3;
  return {
    turn_count: c3.turn_count + i3.turn_count,
    message_count: c3.message_count + i3.message_count,
    tool_call_count: c3.tool_call_count + i3.tool_call_count,
    total_chars: c3.total_chars + i3.total_chars
  };
}
var hasFailed = ({ result }) => result?.success === false && !result.not_run;
var asked = () => {
};
var session = {
  get: () => getJSON("/session"),
  start: (token) => ask("/session", { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ token }) }),
  end: () => ask("/session", { method: "DELETE" }),
  // onNeeded is called when the server wants a token, or another one.
  onNeeded: (f4) => {
    asked = f4;
  }
};
var Problem = class extends Error {
  // the request is made again after a pause
  constructor(status, detail) {
    super(detail);
    this.status = status;
  }
  status;
  again = false;
};
function path(template, segments, query = {}) {
  let i3 = 0;
  const filled = template.replace(/\{\}/g, () => encodeURIComponent(segments[i3++] ?? ""));
  const parameters2 = new URLSearchParams();
  for (const [name, value] of Object.entries({ tenant: tenant(), ...query })) {
    for (const one of Array.isArray(value) ? value : [value]) if (one !== void 0 && one !== "") parameters2.append(name, String(one));
  }
  const text = parameters2.toString();
  return text ? `${filled}?${text}` : filled;
}
function tenant() {
  return new URLSearchParams(location.search).get("tenant") ?? void 0;
}
async function ask(url, init = {}) {
  let answer;
  try {
    answer = await fetch(url, init);
  } catch (e3) {
    if (e3.name === "AbortError") throw e3;
    throw new Problem(0, "The server does not answer. Is mneme still running?");
  }
  if (answer.ok) return answer;
  if (answer.status === 401) asked();
  const problem = await answer.json().catch(() => null);
  throw new Problem(answer.status, problem?.detail ?? problem?.title ?? `The server answered ${answer.status}.`);
}
async function getJSON(url, signal) {
  return (await ask(url, { signal })).json();
}
var pauses = { first: 1e3, longest: 3e4 };
function passes(e3) {
  return !(e3.status >= 400 && e3.status < 500) || e3.status === 429;
}
async function patient(f4, signal, failed) {
  let pause2 = pauses.first;
  for (; ; ) {
    try {
      await f4(() => {
        pause2 = pauses.first;
      });
      return true;
    } catch (e3) {
      if (signal.aborted) return false;
      const problem = e3;
      problem.again = passes(problem);
      failed(problem);
      if (!problem.again) return false;
    }
    await new Promise((done) => setTimeout(done, pause2));
    if (signal.aborted) return false;
    pause2 = Math.min(2 * pause2, pauses.longest);
  }
}
async function post(url, body) {
  const answer = await ask(url, { method: "POST", headers: { "Content-Type": "application/json" }, body: body === void 0 ? void 0 : JSON.stringify(body) });
  return answer.json();
}
var roles = ["read", "write", "operate", "admin"];
function lacks(access, role, all = false) {
  if (!access) return "";
  if (roles.indexOf(access.role) < roles.indexOf(role)) return `This needs a token with the role ${role}; yours has the role ${access.role}.`;
  if (all && !access.all_tenants) return "This needs a token of all tenants; yours is of one.";
  if (access.project) return "This needs a token of the whole tenant; yours is of one project.";
  return void 0;
}
var known;
var learnt;
async function learn() {
  let access;
  await patient(async () => {
    access = await getJSON("/v1/access");
  }, new AbortController().signal, () => {
  });
  if (!access) known = void 0;
  learnt = access;
  return access;
}
function useAccess(signedIn = true) {
  const [access, set] = d2(learnt);
  A2(() => {
    if (!signedIn) return;
    let current = true;
    known ??= learn();
    void known.then((a4) => {
      if (current) set(a4);
    });
    return () => {
      current = false;
    };
  }, [signedIn]);
  return access;
}
function useGet(url, wait = 0) {
  const [state, set] = d2({});
  const [turn, again3] = d2(0);
  A2(() => {
    if (url === null) {
      set({});
      return;
    }
    const control = new AbortController();
    const timer = setTimeout(() => {
      void patient(
        async () => set({ data: await getJSON(url, control.signal), url }),
        control.signal,
        (error) => set((before2) => ({ error, url, data: before2.url === url ? before2.data : void 0 }))
      );
    }, wait);
    return () => {
      clearTimeout(timer);
      control.abort();
    };
  }, [url, turn]);
  return { ...state, loading: url !== null && state.url !== url, again: () => again3((n2) => n2 + 1) };
}
function useWatch({ data, error, again: again3 }, every) {
  A2(() => {
    if (!data || error) return;
    const timer = setInterval(() => {
      if (document.hidden) return;
      clearInterval(timer);
      again3();
    }, every);
    return () => clearInterval(timer);
  }, [data, error]);
}
function useGetLater(key, find) {
  const [state, set] = d2({ key });
  A2(() => {
    if (key === null) return;
    const control = new AbortController();
    void patient(async () => set({ key, data: await getJSON(await find(), control.signal) }), control.signal, (error) => set({ key, error }));
    return () => control.abort();
  }, [key]);
  return state.key === key ? state : {};
}
async function homeOf(c3, seq) {
  while (c3.inherited && seq < c3.first_seq) c3 = await getJSON(path("/v1/conversations/{}", [c3.inherited.conversation_id]));
  return c3.id;
}
async function asOf(c3, seq, template, query = {}) {
  return path(template, [await homeOf(c3, seq)], { ...query, as_of: seq });
}
function usePages(url, member, wait = 0) {
  const [state, set] = d2({ url, list: [], loading: true });
  const control = T2(void 0);
  const load = (cursor, before2) => {
    if (url === null) return;
    control.current?.abort();
    const own = control.current = new AbortController();
    set({ url, list: before2, loading: true });
    const page2 = cursor ? `${url}${url.includes("?") ? "&" : "?"}cursor=${encodeURIComponent(cursor)}` : url;
    const read = async () => {
      const d3 = await getJSON(page2, own.signal);
      set({ url, list: [...before2, ...d3[member] ?? []], rest: d3, next: d3["next_cursor"], loading: false });
    };
    const failed = (error2) => {
      if (!own.signal.aborted) set({ url, list: before2, error: error2, next: cursor, loading: false });
    };
    if (cursor) read().catch(failed);
    else void patient(read, own.signal, failed);
  };
  A2(() => {
    const timer = setTimeout(() => load(void 0, []), wait);
    return () => {
      clearTimeout(timer);
      control.current?.abort();
    };
  }, [url]);
  const { list, rest, error, loading, next } = state;
  if (state.url !== url) return { list: [], loading: url !== null };
  return { list, rest, error, loading, more: next && !loading ? () => load(next, list) : void 0 };
}

// preact/jsxRuntime.mjs
var f3 = /* @__PURE__ */ Symbol.for("pv");
var o3 = 0;
function a3(t3, e3, n2, u3, a4, i3) {
  e3 || (e3 = {});
  var c3, l3, p3 = e3;
  if ("ref" in p3 && "function" != typeof t3) for (l3 in p3 = {}, e3) "ref" == l3 ? c3 = e3[l3] : p3[l3] = e3[l3];
  var s3 = { type: t3, props: p3, key: n2, ref: c3, __k: null, __: null, __b: 0, __e: null, __c: null, constructor: f3, __v: --o3, __i: -1, __u: 0 };
  return (a4 || i3) && (s3.__source = a4, s3.__self = i3), n.vnode && n.vnode(s3), s3;
}

// src/text.tsx
var disguising = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff0-\uffff\u{1d173}-\u{1d17a}\u{e0000}-\u{e0fff}]/gu;
function Text({ of, max = 2e5 }) {
  const text = of.length > max ? of.slice(0, max) : of;
  const parts = [];
  let end = 0;
  for (const found of text.matchAll(disguising)) {
    if (found.index > end) parts.push(text.slice(end, found.index));
    const code = found[0].codePointAt(0).toString(16).toUpperCase().padStart(4, "0");
    parts.push(/* @__PURE__ */ a3("span", { class: "mark", title: `the character U+${code}, which is not shown`, children: code }));
    end = found.index + found[0].length;
  }
  parts.push(text.slice(end));
  return /* @__PURE__ */ a3("bdi", { children: [
    parts,
    of.length > max && /* @__PURE__ */ a3("span", { class: "mark", children: [
      "… ",
      count(of.length - max),
      " more characters"
    ] })
  ] });
}
var plain = (text) => text.replace(disguising, "");
function useTitle(...parts) {
  const title = plain([...parts.filter(Boolean), "mneme"].join(" · "));
  A2(() => {
    document.title = title;
  }, [title]);
}
function useTextScale() {
  return d2(() => parseFloat(getComputedStyle(document.documentElement).fontSize) / 15)[0];
}
function Lit({ of, highlights = [] }) {
  const characters = [...of], parts = [];
  let end = 0;
  for (const h3 of highlights) {
    parts.push(/* @__PURE__ */ a3(Text, { of: characters.slice(end, h3.start).join("") }), /* @__PURE__ */ a3("mark", { children: /* @__PURE__ */ a3(Text, { of: characters.slice(h3.start, h3.end).join("") }) }));
    end = h3.end;
  }
  return /* @__PURE__ */ a3($, { children: [
    parts,
    /* @__PURE__ */ a3(Text, { of: characters.slice(end).join("") })
  ] });
}
var count = (n2) => n2.toLocaleString("en-US");
function share(n2) {
  return n2.toFixed(3).replace(/^(-?)0\./, "$1.");
}
function plural(n2, one, many = one + "s") {
  return `${count(n2)} ${n2 === 1 ? one : many}`;
}
var zoned = new Intl.DateTimeFormat("en-GB", { dateStyle: "full", timeStyle: "long" });
function local(date) {
  const two = (n2) => String(n2).padStart(2, "0");
  return `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())} ${two(date.getHours())}:${two(date.getMinutes())}`;
}
function Time({ of }) {
  if (!of) return null;
  const date = new Date(of);
  if (isNaN(date.getTime())) return /* @__PURE__ */ a3(Text, { of });
  return /* @__PURE__ */ a3("time", { dateTime: of, title: `${zoned.format(date)}
${of}`, children: local(date) });
}
function firstLine(text, max = 240) {
  const line = text.slice(0, max * 2).replace(/\s+/g, " ").trim();
  return line.length > max ? line.slice(0, max) + "…" : line;
}
function typed(text) {
  const command = /^\s*<command-message>[^<]*<\/command-message>\s*<command-name>(\/[^<]*)<\/command-name>\s*(?:<command-args>([^]*)<\/command-args>\s*)?$/.exec(text);
  const task = /^\s*<teammate-message teammate_id="team-lead"[^>]*>\s*([^{\s][^]*?)\s*(?:<\/teammate-message>\s*)?$/.exec(text);
  return command ? `${command[1]} ${command[2] ?? ""}`.trim() : task ? task[1] : text;
}
function asText(value) {
  return typeof value === "string" ? value : value === void 0 ? "" : JSON.stringify(value, null, 2);
}
function Notice({ error, children }) {
  if (error) return /* @__PURE__ */ a3("p", { class: "notice error", role: "alert", children: [
    /* @__PURE__ */ a3(Text, { of: error.message }),
    error.again && " Trying again…"
  ] });
  return /* @__PURE__ */ a3("p", { class: "notice", children });
}
function shortPath(path2) {
  const parts = path2.split("/").filter(Boolean);
  return parts.length > 2 ? "…/" + parts.slice(-2).join("/") : path2;
}
function ProjectOptions({ of, chosen }) {
  const list = !chosen || of.includes(chosen) ? of : [chosen, ...of], ends = list.map(shortPath);
  return /* @__PURE__ */ a3($, { children: list.map((name, i3) => /* @__PURE__ */ a3("option", { value: name, children: plain(firstLine(ends.indexOf(ends[i3]) === ends.lastIndexOf(ends[i3]) ? ends[i3] : name, 80)) }, name)) });
}

// src/url.ts
function params() {
  return Object.fromEntries(new URLSearchParams(location.search));
}
function link(to) {
  const kept3 = params()["tenant"];
  return written(kept3 ? { tenant: kept3, ...to } : to);
}
function written(p3) {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(p3)) if (value) query.set(name, value);
  const text = query.toString();
  return text ? `/?${text}` : "/";
}
var changed = "mneme-navigated";
function go(url, replace = false) {
  const focused = document.activeElement;
  if (replace) history.replaceState(null, "", url);
  else {
    history.replaceState({ y: scrollY }, "");
    history.pushState(null, "", url);
  }
  dispatchEvent(new Event(changed));
  if (focused && focused !== document.body) requestAnimationFrame(() => {
    if (document.activeElement === document.body) document.getElementById("main")?.focus({ preventScroll: true });
  });
}
function scrollBack() {
  const y3 = history.state?.y ?? 0, until = performance.now() + 3e3;
  let moved = false;
  for (const what of ["wheel", "keydown", "pointerdown"]) addEventListener(what, () => {
    moved = true;
  }, { once: true, passive: true });
  const look = () => {
    if (moved || scrollY >= y3 || performance.now() > until) return;
    scrollTo(0, y3);
    requestAnimationFrame(look);
  };
  look();
}
function change(to, replace = false) {
  go(written({ ...params(), ...to }), replace);
}
function useParams() {
  const [now, set] = d2(params);
  A2(() => {
    const read = () => set(params());
    const back = () => {
      read();
      scrollBack();
    };
    const follow2 = (e3) => {
      const a4 = e3.target.closest?.("a");
      if (!a4 || a4.origin !== location.origin || a4.pathname !== "/" || a4.hash || e3.button || e3.ctrlKey || e3.metaKey || e3.shiftKey || e3.altKey) return;
      e3.preventDefault();
      go(a4.pathname + a4.search);
      scrollTo(0, 0);
    };
    addEventListener("popstate", back);
    addEventListener(changed, read);
    document.addEventListener("click", follow2);
    return () => {
      removeEventListener("popstate", back);
      removeEventListener(changed, read);
      document.removeEventListener("click", follow2);
    };
  }, []);
  return now;
}

// src/event.tsx
function EventPanel({ seq, of }) {
  const access = useAccess(), apart = access?.project && !of;
  const url = access?.project && of ? path("/v1/conversations/{}/events", [of], { as_of: seq, limit: 1 }) : path("/v1/events/{}", [seq]);
  const { data: answer, error, loading } = useGet(!access || apart ? null : url);
  const [copy, setCopy] = d2();
  F2(() => () => opener?.focus({ preventScroll: true }), []);
  const copied = copy?.url === url ? copy.done : void 0;
  const command = `curl -s '${(location.origin + url).replaceAll("'", "%27")}'`;
  const copyCommand = async () => {
    try {
      await navigator.clipboard.writeText(command);
      setCopy({ url, done: true });
    } catch {
      setCopy({ url, done: false });
    }
  };
  const data = answer && Array.isArray(answer.events) ? answer.events.find((e3) => e3.seq === Number(seq))?.event : answer;
  const { data: payload, ...envelope } = data ?? {};
  const message = data?.["type"] === "dev.mneme.message.created.v1" ? payload : void 0;
  return /* @__PURE__ */ a3("aside", { class: "event", "aria-label": `Event ${seq}`, children: [
    /* @__PURE__ */ a3("div", { class: "bar", children: [
      /* @__PURE__ */ a3("h2", { children: [
        "Event ",
        seq
      ] }),
      /* @__PURE__ */ a3("span", { class: "space" }),
      followable.test(String(data?.["type"])) && /* @__PURE__ */ a3("a", { href: follow(String(data["subject"] ?? of), seq), title: "Whether the context shows this event, or at which budget it would", children: "In the context?" }),
      /* @__PURE__ */ a3("button", { class: "quiet", onClick: () => void copyCommand(), children: copied ? "Copied" : "Copy as curl" }),
      /* @__PURE__ */ a3("button", { class: "quiet", onClick: () => change({ event: void 0 }), "aria-label": "Close the event", children: "✕" })
    ] }),
    copied === false && /* @__PURE__ */ a3("p", { class: "notice error", role: "alert", children: [
      "The browser does not let this page copy. The command is: ",
      /* @__PURE__ */ a3("code", { children: /* @__PURE__ */ a3(Text, { of: command }) })
    ] }),
    (loading || error) && /* @__PURE__ */ a3(Notice, { error, children: "Loading…" }),
    (answer || apart) && !data && !loading && /* @__PURE__ */ a3(Notice, { children: "This token may not read the event, or it is too large to show here." }),
    data && /* @__PURE__ */ a3("div", { class: "scroll", tabIndex: 0, role: "region", "aria-label": "The event", children: [
      /* @__PURE__ */ a3("dl", { class: "envelope", children: Object.entries(envelope).map(([name, value]) => /* @__PURE__ */ a3("div", { children: [
        /* @__PURE__ */ a3("dt", { children: name }),
        /* @__PURE__ */ a3("dd", { children: name === "subject" && value !== of ? /* @__PURE__ */ a3("a", { href: link({ c: String(value) }), children: /* @__PURE__ */ a3(Text, { of: asText(value) }) }) : /* @__PURE__ */ a3(Text, { of: asText(value) }) })
      ] }, name)) }),
      Object.entries(typeof payload === "object" && payload !== null ? payload : { data: payload }).map(([name, value]) => /* @__PURE__ */ a3("section", { children: [
        /* @__PURE__ */ a3("h3", { children: name }),
        /* @__PURE__ */ a3("pre", { children: /* @__PURE__ */ a3(Text, { of: asText(value) }) })
      ] }, name)),
      message?.message_id && /* @__PURE__ */ a3(Embedding, { conversation: String(data["subject"] ?? of), id: message.message_id, content: message.content ?? "" }, seq),
      /* @__PURE__ */ a3("details", { children: [
        /* @__PURE__ */ a3("summary", { children: "The whole CloudEvent as JSON" }),
        /* @__PURE__ */ a3("pre", { children: /* @__PURE__ */ a3(Text, { of: JSON.stringify(data, null, 2) }) })
      ] })
    ] })
  ] });
}
var followable = /^dev\.mneme\.(message\.created|tool\.called|tool\.returned)\.v1$/;
function follow(conversation, seq) {
  const p3 = params();
  return link({ ...p3["c"] === conversation && p3["view"] === "context" ? p3 : {}, c: conversation, view: "context", follow: seq, event: void 0 });
}
function Embedding({ conversation, id, content }) {
  const [open, setOpen] = d2(false);
  const { data, error } = useGet(open ? path("/v1/conversations/{}/messages/{}/embedding", [conversation, id]) : null);
  const bytes = open ? new TextEncoder().encode(content) : void 0;
  return /* @__PURE__ */ a3("details", { class: "embedding", onToggle: (e3) => setOpen(e3.currentTarget.open), children: [
    /* @__PURE__ */ a3("summary", { children: "How searches see it" }),
    open && (!data ? /* @__PURE__ */ a3(Notice, { error, children: "Loading…" }) : /* @__PURE__ */ a3($, { children: [
      /* @__PURE__ */ a3("p", { children: data.model ? /* @__PURE__ */ a3($, { children: [
        plural(data.passages.length, "passage"),
        ", ",
        data.dimensions,
        " numbers each by ",
        /* @__PURE__ */ a3(Text, { of: data.model }),
        "."
      ] }) : "No embeddings: searches rank it by words alone." }),
      data.passages.slice(0, 20).map((passage, i3) => /* @__PURE__ */ a3("section", { children: [
        /* @__PURE__ */ a3("p", { class: "dim", children: [
          "bytes ",
          count(passage.start),
          " to ",
          count(passage.end),
          ", ",
          plural(passage.terms, "word"),
          " that count",
          passage.vector ? "" : ", no vector yet"
        ] }),
        /* @__PURE__ */ a3("p", { children: /* @__PURE__ */ a3(Text, { of: firstLine(new TextDecoder().decode(bytes.slice(passage.start, passage.end)), 140) }) }),
        passage.vector && /* @__PURE__ */ a3($, { children: [
          /* @__PURE__ */ a3("svg", { class: "vector", viewBox: `0 -128 ${passage.vector.length} 256`, preserveAspectRatio: "none", role: "img", "aria-label": `${plural(passage.vector.length, "number")} from ${Math.min(...passage.vector)} to ${Math.max(...passage.vector)}`, children: /* @__PURE__ */ a3("path", { d: passage.vector.map((v3, x2) => `M${x2 + 0.5} 0V${-v3}`).join("") }) }),
          /* @__PURE__ */ a3("details", { children: [
            /* @__PURE__ */ a3("summary", { children: "Numbers" }),
            /* @__PURE__ */ a3("pre", { children: passage.vector.join(" ") })
          ] })
        ] })
      ] }, i3)),
      data.passages.length > 20 && /* @__PURE__ */ a3("p", { class: "dim", children: [
        "and ",
        count(data.passages.length - 20),
        " more"
      ] })
    ] }))
  ] });
}
var opener;
function EventLink({ seq }) {
  if (!seq) return null;
  const open = (e3) => {
    opener = e3.currentTarget;
    change({ event: String(seq) });
  };
  return /* @__PURE__ */ a3("button", { class: "quiet seq", onClick: open, title: "Show the event as it is in the log", children: [
    "#",
    seq
  ] });
}
function TurnLink({ of, turn, event }) {
  return /* @__PURE__ */ a3("a", { href: link({ c: of, turn: String(turn), event: event ? String(event) : void 0 }), children: [
    "turn ",
    turn
  ] });
}

// src/field.tsx
function Field({ label, name, type, value, onDone, placeholder, size: size2, min, max, step }) {
  const [typed2, set] = d2();
  const shared = {
    "aria-label": name,
    placeholder,
    value: typed2 ?? value,
    onBlur: () => set(void 0),
    onInput: (e3) => set(e3.currentTarget.value),
    onChange: (e3) => {
      set(void 0);
      onDone(e3.currentTarget.value);
    }
  };
  const field = type === "number" ? /* @__PURE__ */ a3("input", { type: "number", min, max, step, ...shared }) : /* @__PURE__ */ a3("input", { type: "text", size: size2, ...shared });
  return label ? /* @__PURE__ */ a3("label", { children: [
    label,
    " ",
    field
  ] }) : field;
}

// src/found.tsx
function ToolResult({ r: r3, of, title }) {
  return /* @__PURE__ */ a3("article", { class: "found", children: [
    /* @__PURE__ */ a3("p", { class: "facts", children: [
      /* @__PURE__ */ a3("a", { href: link({ c: of, turn: String(r3.turn), event: String(r3.seq) }), children: /* @__PURE__ */ a3(Text, { of: r3.tool_name || "unknown tool" }) }),
      r3.argument && /* @__PURE__ */ a3("code", { children: /* @__PURE__ */ a3(Text, { of: r3.argument }) }),
      r3.success === false && /* @__PURE__ */ a3("span", { class: `badge state ${r3.not_run ? "" : "bad"}`, children: r3.not_run ?? "failed" }),
      /* @__PURE__ */ a3("span", { children: [
        "turn ",
        r3.turn
      ] }),
      r3.duplicates && /* @__PURE__ */ a3("span", { children: [
        count(r3.duplicates),
        " more like it"
      ] }),
      title && /* @__PURE__ */ a3("span", { children: /* @__PURE__ */ a3(Text, { of: title }) }),
      /* @__PURE__ */ a3(Time, { of: r3.time })
    ] }),
    /* @__PURE__ */ a3("pre", { children: /* @__PURE__ */ a3(Lit, { of: r3.text, highlights: r3.highlights }) })
  ] });
}

// src/bench.tsx
var columns = [["words", "Words", "BM25"], ["meaning", "Meaning", "cosine of the embeddings"], ["fused", "Fused", "what contexts use"]];
function Bench({ c: c3, p: p3 }) {
  const query = p3["q"] ?? "", expected = Number(p3["expect"]) || 0, tools = p3["kind"] === "tool";
  const read = (method) => usePages(query && !tools ? path("/v1/conversations/{}/search", [c3.id], {
    query,
    method,
    ranks: true,
    limit: 25,
    max_chars: 300,
    role: p3["role"],
    speaker: p3["speaker"],
    from_seq: p3["from"],
    as_of: c3.last_seq
  }) : null, "messages", 200);
  const found = { words: read("words"), meaning: read("meaning"), fused: read("fused") };
  const results = usePages(tools ? path("/v1/conversations/{}/search", [c3.id], {
    query,
    kind: "tool",
    tool: p3["tool"],
    file: p3["file"],
    from_seq: p3["from"],
    limit: 25,
    max_chars: 600,
    as_of: c3.last_seq
  }) : null, "tool_results", 200);
  const ranks = Object.values(found).flatMap((f4) => f4.list).find((h3) => h3.seq === expected)?.ranks;
  const rest = found.fused.rest;
  const error = results.error ?? found.fused.error ?? found.words.error ?? found.meaning.error;
  return /* @__PURE__ */ a3("div", { class: "pad bench", children: [
    /* @__PURE__ */ a3("form", { class: "filters", role: "search", onSubmit: (e3) => e3.preventDefault(), children: [
      /* @__PURE__ */ a3("input", { type: "search", "aria-label": "Search this conversation", placeholder: "Search this conversation", value: query, onInput: (e3) => change({ q: e3.currentTarget.value }, true) }),
      /* @__PURE__ */ a3("label", { children: [
        "In ",
        /* @__PURE__ */ a3("select", { value: tools ? "tool" : "", onChange: (e3) => change({ kind: e3.currentTarget.value }, true), children: [
          /* @__PURE__ */ a3("option", { value: "", children: "messages" }),
          /* @__PURE__ */ a3("option", { value: "tool", children: "tool results" })
        ] })
      ] }),
      tools ? /* @__PURE__ */ a3($, { children: [
        /* @__PURE__ */ a3(Field, { label: "Tool", type: "text", size: 10, value: p3["tool"] ?? "", placeholder: "all", onDone: (v3) => change({ tool: v3 }, true) }),
        /* @__PURE__ */ a3(Field, { label: "File", type: "text", size: 14, value: p3["file"] ?? "", placeholder: "any", onDone: (v3) => change({ file: v3 }, true) })
      ] }) : /* @__PURE__ */ a3($, { children: [
        /* @__PURE__ */ a3("label", { children: [
          "Role ",
          /* @__PURE__ */ a3("select", { value: p3["role"] ?? "", onChange: (e3) => change({ role: e3.currentTarget.value }, true), children: [
            /* @__PURE__ */ a3("option", { value: "", children: "all" }),
            /* @__PURE__ */ a3("option", { children: "user" }),
            /* @__PURE__ */ a3("option", { children: "assistant" }),
            /* @__PURE__ */ a3("option", { children: "system" })
          ] })
        ] }),
        /* @__PURE__ */ a3(Field, { label: "Speaker", type: "text", size: 10, value: p3["speaker"] ?? "", placeholder: "all", onDone: (v3) => change({ speaker: v3 }, true) })
      ] }),
      /* @__PURE__ */ a3(Field, { label: "From event", type: "number", min: "0", value: p3["from"] ?? "", placeholder: "first", onDone: (v3) => change({ from: v3 }, true) }),
      !tools && /* @__PURE__ */ a3("label", { children: [
        "Expected event ",
        /* @__PURE__ */ a3("input", { type: "number", min: "0", value: expected || "", placeholder: "sequence", onInput: (e3) => change({ expect: e3.currentTarget.value }, true) })
      ] })
    ] }),
    /* @__PURE__ */ a3(Notice, { error, children: tools ? results.loading && results.list.length === 0 ? "Searching…" : results.list.length === 0 ? "No tool results found." : query ? "Tool results, ranked by words, best first." : "Tool results, newest first." : !query ? "Type a query. Each column ranks the messages by one method and shows their rank in the other two." : Object.values(found).some((f4) => f4.loading && f4.list.length === 0) ? "Searching…" : rest?.embedding_missing ?? `Meaning by ${rest?.embedding_model ?? "no model"}.` }),
    tools && /* @__PURE__ */ a3($, { children: [
      results.list.map((r3) => /* @__PURE__ */ a3(ToolResult, { r: r3, of: c3.id }, r3.seq)),
      results.more && /* @__PURE__ */ a3("button", { onClick: results.more, children: "Show more" })
    ] }),
    expected > 0 && query && !tools && /* @__PURE__ */ a3("p", { class: "notice", children: [
      "Event ",
      expected,
      ": ",
      ranks ? columns.map(([m3, name]) => `${name.toLowerCase()} rank ${ranks[m3] ?? "over 1,000"}`).join(", ") : "not among the messages listed so far",
      "."
    ] }),
    query && !tools && /* @__PURE__ */ a3("div", { class: "columns", children: columns.map(([method, name, what]) => {
      const { list, more, loading, error: error2 } = found[method];
      return /* @__PURE__ */ a3("section", { "aria-label": name, children: [
        /* @__PURE__ */ a3("h2", { children: [
          name,
          " ",
          /* @__PURE__ */ a3("span", { class: "dim", children: what })
        ] }),
        !loading && !error2 && list.length === 0 && /* @__PURE__ */ a3(Notice, { children: "Nothing found." }),
        /* @__PURE__ */ a3("ol", { children: list.map((h3) => /* @__PURE__ */ a3(Result, { of: c3.id, h: h3, method, expected }, h3.seq)) }),
        more && /* @__PURE__ */ a3("button", { onClick: more, children: [
          "Show more than ",
          plural(list.length, "message")
        ] })
      ] }, method);
    }) })
  ] });
}
function Result({ of, h: h3, method, expected }) {
  return /* @__PURE__ */ a3("li", { class: h3.seq === expected ? "expected" : "", children: [
    /* @__PURE__ */ a3("p", { class: "facts", children: [
      /* @__PURE__ */ a3("b", { children: share(h3.score) }),
      /* @__PURE__ */ a3(TurnLink, { of, turn: h3.turn, event: h3.seq }),
      /* @__PURE__ */ a3("span", { children: /* @__PURE__ */ a3(Text, { of: h3.speaker ?? h3.role }) }),
      /* @__PURE__ */ a3(EventLink, { seq: h3.seq }),
      /* @__PURE__ */ a3("button", { class: "quiet", onClick: () => change({ expect: String(h3.seq) }, true), title: "Show its rank in each column", children: "mark" })
    ] }),
    /* @__PURE__ */ a3("p", { children: /* @__PURE__ */ a3(Lit, { of: h3.text ?? "", highlights: h3.highlights }) }),
    /* @__PURE__ */ a3("p", { class: "parts", children: [
      columns.filter(([m3]) => m3 !== method).map(([m3, name]) => /* @__PURE__ */ a3("span", { class: "part rank", children: [
        name.toLowerCase(),
        " ",
        h3.ranks?.[m3] ? `rank ${h3.ranks[m3]}` : "not found"
      ] }, m3)),
      h3.bm25 !== void 0 && method === "words" && /* @__PURE__ */ a3("span", { class: "part", children: [
        "BM25 ",
        h3.bm25.toFixed(2)
      ] }),
      h3.cosine !== void 0 && method === "meaning" && /* @__PURE__ */ a3("span", { class: "part", children: [
        "cosine ",
        share(h3.cosine)
      ] })
    ] }),
    method === "fused" && /* @__PURE__ */ a3(Parts, { parts: h3.parts })
  ] });
}
function Parts({ parts }) {
  const list = Object.entries(parts).filter(([, v3]) => v3 > 0);
  return /* @__PURE__ */ a3("p", { class: "parts", children: list.map(([name, v3]) => /* @__PURE__ */ a3("span", { class: `part ${name}`, children: [
    partNames[name] ?? name,
    " ",
    share(v3)
  ] }, name)) });
}
var partNames = { lexical: "words", dense: "meaning" };

// src/parameters.tsx
var strategies = ["hybrid", "relevant", "levels", "recent", "pruned"];
function contextQuery(p3, suffix = "") {
  return {
    query: p3["q" + suffix],
    max_chars: p3["max" + suffix] ?? "20000",
    strategy: p3["strategy" + suffix],
    condense: p3["condense" + suffix],
    as_of: p3["as_of" + suffix],
    project_memory: p3["memory" + suffix],
    embedded_up_to: p3["embedded" + suffix]
  };
}
function Controls({ c: c3, p: p3, suffix = "", name }) {
  const set = (key, value, replace = true) => change({ [key + suffix]: value || void 0, served: void 0 }, replace);
  const max = Number(p3["max" + suffix] ?? 2e4), asOf2 = Number(p3["as_of" + suffix] ?? c3.last_seq);
  return /* @__PURE__ */ a3("form", { class: "controls", "aria-label": name, onSubmit: (e3) => e3.preventDefault(), children: [
    /* @__PURE__ */ a3("label", { class: "wide", children: [
      "Query ",
      /* @__PURE__ */ a3("input", { type: "search", placeholder: "what the user said last", value: p3["q" + suffix] ?? "", onInput: (e3) => set("q", e3.currentTarget.value) })
    ] }),
    /* @__PURE__ */ a3("label", { children: [
      "Strategy ",
      /* @__PURE__ */ a3("select", { value: p3["strategy" + suffix] ?? "hybrid", onChange: (e3) => set("strategy", e3.currentTarget.value), children: strategies.map((s3) => /* @__PURE__ */ a3("option", { children: s3 }, s3)) })
    ] }),
    /* @__PURE__ */ a3("label", { children: [
      "Condense ",
      /* @__PURE__ */ a3("select", { value: p3["condense" + suffix] ?? "", onChange: (e3) => set("condense", e3.currentTarget.value), children: [
        /* @__PURE__ */ a3("option", { value: "", children: "server's setting" }),
        /* @__PURE__ */ a3("option", { children: "off" }),
        /* @__PURE__ */ a3("option", { children: "clear" }),
        /* @__PURE__ */ a3("option", { children: "extractive" }),
        /* @__PURE__ */ a3("option", { children: "llm" })
      ] })
    ] }),
    /* @__PURE__ */ a3("label", { class: "slider", children: [
      "Budget ",
      /* @__PURE__ */ a3(
        "input",
        {
          type: "range",
          min: "27",
          max: "60",
          step: "0.5",
          value: Math.log2(max) * 4 - 9.83,
          "aria-valuetext": `${count(max)} characters`,
          onInput: (e3) => set("max", String(Math.round(2 ** ((Number(e3.currentTarget.value) + 9.83) / 4) / 100) * 100))
        }
      ),
      /* @__PURE__ */ a3(Field, { type: "number", min: "500", max: "1000000", step: "500", value: max, name: "Budget in characters", onDone: (v3) => set("max", v3) })
    ] }),
    /* @__PURE__ */ a3("label", { class: "slider", children: [
      "As of ",
      /* @__PURE__ */ a3(
        "input",
        {
          type: "range",
          min: c3.first_seq,
          max: c3.last_seq,
          value: asOf2,
          "aria-valuetext": `sequence ${asOf2}`,
          onInput: (e3) => set("as_of", Number(e3.currentTarget.value) >= c3.last_seq ? "" : e3.currentTarget.value)
        }
      ),
      /* @__PURE__ */ a3("output", { children: asOf2 >= c3.last_seq ? "now" : `#${asOf2}` })
    ] })
  ] });
}

// src/lines.tsx
var sectionNames = {
  last_user_queries: "Queries",
  recent_turns: "Recent",
  relevant_past_context: "Past",
  relevant_code_context: "Code",
  story_so_far: "Story",
  recently_accessed_files: "Files",
  earlier_sessions: "Earlier"
};
var sectionName = (name) => sectionNames[name] ?? name.charAt(0).toUpperCase() + name.slice(1).replaceAll("_", " ");
function Budget({ data, lines, left }) {
  const m3 = data.manifest;
  const parts = m3.sections.filter((s3) => s3.used > 0);
  const percent = (n2) => Math.round(n2 / m3.budget * 100);
  return /* @__PURE__ */ a3("div", { class: "budget", children: [
    /* @__PURE__ */ a3("div", { class: "track", role: "img", "aria-label": parts.map((s3) => `${sectionName(s3.name)} ${percent(s3.used)} %`).join(", ") + `, free ${percent(m3.budget - m3.used)} %`, children: [
      parts.map((s3) => /* @__PURE__ */ a3("span", { class: `s-${s3.name}`, style: { flexGrow: s3.used } }, s3.name)),
      /* @__PURE__ */ a3("span", { class: "free", style: { flexGrow: Math.max(0, m3.budget - m3.used) } })
    ] }),
    /* @__PURE__ */ a3("p", { class: "legend", children: [
      parts.map((s3) => {
        const text = /* @__PURE__ */ a3($, { children: [
          /* @__PURE__ */ a3("i", { class: `s-${s3.name}` }),
          sectionName(s3.name),
          " ",
          /* @__PURE__ */ a3("b", { children: [
            percent(s3.used),
            " %"
          ] })
        ] });
        return lines ? /* @__PURE__ */ a3("a", { href: `#s-${s3.name}`, children: text }, s3.name) : /* @__PURE__ */ a3("span", { children: text }, s3.name);
      }),
      /* @__PURE__ */ a3("span", { class: "space" }),
      left && /* @__PURE__ */ a3("a", { href: "#left", children: "What was left out" }),
      /* @__PURE__ */ a3("span", { children: [
        /* @__PURE__ */ a3("b", { children: count(m3.used) }),
        " of ",
        count(m3.budget),
        " characters, as of #",
        data.as_of
      ] })
    ] })
  ] });
}
function split(markdown, ranges) {
  let at = 0, units = 0;
  const unitAt = (point) => {
    for (; at < point && units < markdown.length; at++) units += markdown.codePointAt(units) > 65535 ? 2 : 1;
    return units;
  };
  return ranges.map((r3) => {
    const start = unitAt(r3.start), end = unitAt(r3.end);
    return { start, end, text: markdown.slice(start, end) };
  });
}
function Lines({ data, of, followed }) {
  const text = data.markdown ?? "";
  const all = data.sections.flatMap((s3) => {
    const ranges = data.manifest.sections.find((m3) => m3.name === s3.name)?.ranges ?? [];
    return s3.items.map((item, i3) => ({ section: s3.name, item, range: ranges[i3] })).filter((x2) => x2.range);
  });
  const lines = split(text, all.map((x2) => x2.range));
  const out = [];
  let end = 0, section = "";
  all.forEach(({ section: name, item }, i3) => {
    const { start, end: stop, text: shown3 } = lines[i3];
    const between = text.slice(end, start).trim();
    if (between) out.push(/* @__PURE__ */ a3("div", { id: name !== section ? `s-${name}` : void 0, class: `line heading ${name !== section ? "first" : ""}`, children: between.split(/\n\n+/).map((part, j2, parts) => /* @__PURE__ */ a3("pre", { class: j2 === parts.length - 1 ? "last" : "", children: /* @__PURE__ */ a3(Text, { of: part }) }, j2)) }, `b${i3}`));
    const here = followed && (item.seq === followed || item.result_seq === followed);
    out.push(
      /* @__PURE__ */ a3("div", { id: here ? `e-${followed}` : void 0, class: `line s-${name} ${here ? "followed" : ""}`, children: [
        /* @__PURE__ */ a3("pre", { children: /* @__PURE__ */ a3(Text, { of: shown3.replace(/^\n+|\n+$/g, "") }) }),
        /* @__PURE__ */ a3("div", { class: "why", children: /* @__PURE__ */ a3(Why, { item, of }) })
      ] }, i3)
    );
    end = stop;
    section = name;
  });
  const rest = text.slice(end).trim();
  if (rest) out.push(/* @__PURE__ */ a3("div", { class: "line heading", children: /* @__PURE__ */ a3("pre", { children: /* @__PURE__ */ a3(Text, { of: rest }) }) }, "rest"));
  return /* @__PURE__ */ a3("section", { class: "lines", "aria-label": "What the agent sees, and why", children: [
    /* @__PURE__ */ a3("div", { class: "line titles", children: [
      /* @__PURE__ */ a3("h2", { children: "What the agent sees" }),
      /* @__PURE__ */ a3("h2", { children: "Why" })
    ] }),
    out.length ? out : /* @__PURE__ */ a3(Notice, { children: "Nothing: the conversation had no messages yet." })
  ] });
}
function reason(item) {
  switch (item.kind) {
    case "query":
      return "A request of the user.";
    case "message":
    case "tool_call":
    case "tool_result":
      return "Among the newest turns.";
    case "left_out":
      return "Marks what was left out here.";
    case "relevant":
      return "Found by the search.";
    case "code":
      return `${item.match ? "Code found by the search" : "Code"}${item.tool_name ? ", through " + item.tool_name : ""}.`;
    case "summary":
      return `Summary of turns ${item.summary?.first_turn} to ${item.summary?.last_turn}, level ${item.summary?.level}.`;
    case "file":
      return `Last access: ${item.access}.`;
    case "note":
      return "From another conversation of the project.";
    case "folder":
      return "Files touched by conversations of the project.";
  }
  return item.kind;
}
function Why({ item, of }) {
  const whole = item.result_whole_chars ?? item.whole_chars;
  return /* @__PURE__ */ a3($, { children: [
    /* @__PURE__ */ a3("p", { children: [
      /* @__PURE__ */ a3(Text, { of: reason(item) }),
      item.origin && /* @__PURE__ */ a3($, { children: [
        " Written by ",
        /* @__PURE__ */ a3(Text, { of: item.origin }),
        "."
      ] })
    ] }),
    item.match && /* @__PURE__ */ a3($, { children: [
      /* @__PURE__ */ a3("p", { children: [
        "Relevance ",
        Math.round(item.match.relevance * 100),
        " %"
      ] }),
      /* @__PURE__ */ a3(Parts, { parts: item.match.parts })
    ] }),
    /* @__PURE__ */ a3("p", { class: "dim", children: [
      item.turn > 0 && /* @__PURE__ */ a3($, { children: [
        of && !item.session ? /* @__PURE__ */ a3(TurnLink, { of, turn: item.turn, event: item.seq }) : `turn ${item.turn}`,
        " · "
      ] }),
      item.session && /* @__PURE__ */ a3($, { children: [
        /* @__PURE__ */ a3("a", { href: link({ c: item.session, turn: item.turn ? String(item.turn) : void 0 }), children: "its conversation" }),
        " · "
      ] }),
      plural(item.chars, "character"),
      whole ? ` of ${count(whole)}` : "",
      " ",
      /* @__PURE__ */ a3(EventLink, { seq: item.seq }),
      item.result_seq ? /* @__PURE__ */ a3(EventLink, { seq: item.result_seq }) : null
    ] })
  ] });
}
function Bytes({ data }) {
  const text = data.markdown ?? "", claimed = data.manifest.hash;
  const [result, set] = d2("");
  A2(() => {
    let current = true;
    if (!crypto.subtle) {
      set("not checked: browsers compute hashes only over HTTPS or on localhost");
      return;
    }
    void crypto.subtle.digest("SHA-256", new TextEncoder().encode(text)).then((digest) => {
      const hex = [...new Uint8Array(digest)].map((b) => b.toString(16).padStart(2, "0")).join("");
      if (current) set(hex === claimed ? "verified in this browser" : `differs from ${hex}, computed in this browser`);
    });
    return () => {
      current = false;
    };
  }, [text, claimed]);
  return /* @__PURE__ */ a3("section", { "aria-label": "Exact text", children: [
    /* @__PURE__ */ a3("p", { class: "hash", children: [
      /* @__PURE__ */ a3("span", { class: "dim", children: "SHA-256" }),
      " ",
      /* @__PURE__ */ a3("code", { children: claimed }),
      " ",
      /* @__PURE__ */ a3("span", { class: "dim", children: result })
    ] }),
    /* @__PURE__ */ a3("pre", { class: "exact", tabIndex: 0, children: /* @__PURE__ */ a3(Text, { of: text, max: 1e6 }) })
  ] });
}
function Dropped({ data }) {
  const dropped = data.manifest.sections.filter((s3) => s3.dropped.length > 0);
  if (dropped.length === 0) return /* @__PURE__ */ a3("p", { class: "dim", children: "Nothing: everything fits." });
  return /* @__PURE__ */ a3("ul", { class: "drops", children: dropped.map((s3) => /* @__PURE__ */ a3("li", { children: [
    /* @__PURE__ */ a3("i", { class: `s-${s3.name}` }),
    /* @__PURE__ */ a3("b", { children: sectionName(s3.name) }),
    " ",
    s3.dropped.map((d3) => `${count(d3.count)} ${d3.what}: ${d3.reason}`).join(" · ")
  ] }, s3.name)) });
}

// src/compare.tsx
function identity(item) {
  return [item.event_id || item.label || item.text, item.path, item.start_line].join("\0");
}
function placed(c3) {
  const all = /* @__PURE__ */ new Map();
  for (const s3 of c3.sections) {
    for (const item of s3.items) {
      if (item.kind === "left_out") continue;
      let key = identity(item);
      while (all.has(key)) key += "\0again";
      all.set(key, { section: s3.name, item });
    }
  }
  return all;
}
function absence(item, other, otherwise) {
  if ((item.seq ?? 0) > other.as_of) return "it did not exist yet";
  const summary2 = other.sections.flatMap((s3) => s3.items).find((x2) => x2.summary && item.seq && item.kind !== "summary" && x2.summary.first_seq <= item.seq && item.seq <= x2.summary.last_seq)?.summary;
  return summary2 ? `${otherwise}; the summary of turns ${summary2.first_turn} to ${summary2.last_turn} covers it` : otherwise;
}
function differences(a4, b, words3) {
  const inA = placed(a4), inB = placed(b);
  const list = [];
  let same = 0;
  for (const [key, { section, item }] of inA) {
    const other = inB.get(key);
    if (!other) list.push({ key, section, item, state: "gone", because: "because " + absence(item, b, words3.notInSecond) });
    else if (other.section !== section) list.push({ key, section, item, state: "moved", because: `${words3.second} in ${sectionName(other.section)}` });
    else if (other.item.chars !== item.chars) list.push({ key, section, item, state: item.chars > other.item.chars ? "shorter" : "longer", because: `${count(item.chars)} characters ${words3.first}, ${count(other.item.chars)} ${words3.second}` });
    else same++;
  }
  for (const [key, { section, item }] of inB) if (!inA.has(key)) list.push({ key, section, item, state: "new", because: "because " + absence(item, a4, words3.notInFirst) });
  return { same, list };
}
function shown(item) {
  const text = [item.label, item.path, item.tool_name, item.text || item.arguments].filter(Boolean).join(" ");
  return text || (item.kind === "message" ? "a message without text" : item.kind.replace("_", " "));
}
var signs = { gone: "−", new: "+", shorter: "◂", longer: "▸", moved: "↔" };
function Differences({ list, words: words3 }) {
  return /* @__PURE__ */ a3($, { children: [...new Set(list.map((x2) => x2.section))].map((section) => /* @__PURE__ */ a3("section", { class: "diff", "aria-label": sectionName(section), children: [
    /* @__PURE__ */ a3("h2", { children: [
      /* @__PURE__ */ a3("i", { class: `s-${section}` }),
      sectionName(section)
    ] }),
    /* @__PURE__ */ a3("ul", { children: list.filter((x2) => x2.section === section).map((x2) => /* @__PURE__ */ a3("li", { class: x2.state, children: [
      /* @__PURE__ */ a3("span", { class: "sign", "aria-hidden": "true", children: signs[x2.state] }),
      /* @__PURE__ */ a3("span", { children: [
        /* @__PURE__ */ a3("b", { children: words3.states[x2.state] }),
        " ",
        /* @__PURE__ */ a3("span", { class: "dim", children: x2.because }),
        " ",
        /* @__PURE__ */ a3(EventLink, { seq: x2.item.seq }),
        /* @__PURE__ */ a3("br", {}),
        /* @__PURE__ */ a3(Text, { of: firstLine(shown(x2.item), 180) })
      ] })
    ] }, x2.key)) })
  ] }, section)) });
}
var words = {
  states: { gone: "only in A", new: "only in B", shorter: "longer in A", longer: "longer in B", moved: "moved" },
  first: "in A",
  second: "in B",
  notInFirst: "A has no room for it, or ranks it too low",
  notInSecond: "B has no room for it, or ranks it too low"
};
function Compare({ c: c3, p: p3 }) {
  const read = (suffix) => useGet(path("/v1/conversations/{}/context", [c3.id], { ...contextQuery(p3, suffix), explain: "true" }));
  const a4 = read(""), b = read("_b");
  const d3 = a4.data && b.data ? differences(a4.data, b.data, words) : void 0;
  return /* @__PURE__ */ a3("div", { class: "context compare", children: [
    /* @__PURE__ */ a3("div", { class: "two", children: [["A", "", a4], ["B", "_b", b]].map(([name, suffix, read2]) => /* @__PURE__ */ a3("section", { "aria-label": `Context ${name}`, children: [
      /* @__PURE__ */ a3("h2", { children: name }),
      /* @__PURE__ */ a3(Controls, { c: c3, p: p3, suffix, name: `Parameters of ${name}` }),
      read2.error ? /* @__PURE__ */ a3(Notice, { error: read2.error }) : read2.data?.manifest ? /* @__PURE__ */ a3(Budget, { data: read2.data }) : /* @__PURE__ */ a3(Notice, { children: "Loading…" })
    ] }, name)) }),
    d3 && /* @__PURE__ */ a3(Notice, { children: d3.list.length === 0 ? `Both show the same ${count(d3.same)} items.` : `${count(d3.same)} items are the same, ${count(d3.list.length)} differ.` }),
    d3 && /* @__PURE__ */ a3(Differences, { list: d3.list, words })
  ] });
}

// src/followed.tsx
function Followed({ c: c3, p: p3, data, seq }) {
  const section = data.sections.find((s3) => s3.items.some((it) => it.seq === seq || it.result_seq === seq));
  const summary2 = data.sections.flatMap((s3) => s3.items).find((it) => it.summary && it.summary.first_seq <= seq && seq <= it.summary.last_seq);
  const later = seq > data.as_of;
  const { data: tried, error, loading } = useGet(section || later ? null : path("/v1/conversations/{}/context", [c3.id], { ...contextQuery(p3), explain: "candidates", follow: seq }), 300);
  const m3 = tried?.manifest;
  return /* @__PURE__ */ a3("div", { class: "banner bar", role: "status", children: [
    /* @__PURE__ */ a3("span", { children: [
      "Event ",
      /* @__PURE__ */ a3(EventLink, { seq }),
      section ? /* @__PURE__ */ a3($, { children: [
        " is in this context: ",
        /* @__PURE__ */ a3("a", { href: `#e-${seq}`, children: sectionName(section.name) }),
        "."
      ] }) : later ? ` is newer than #${data.as_of}, the position of this context.` : /* @__PURE__ */ a3($, { children: [
        " is left out. ",
        summary2 && /* @__PURE__ */ a3($, { children: [
          "A summary of turns ",
          summary2.summary.first_turn,
          " to ",
          summary2.summary.last_turn,
          ", ",
          /* @__PURE__ */ a3(EventLink, { seq: summary2.seq }),
          ", replaces it. "
        ] }),
        error ? /* @__PURE__ */ a3(Notice, { error }) : !m3 || loading ? "Trying larger budgets…" : m3.followed?.fits_at ? /* @__PURE__ */ a3($, { children: [
          "With a budget of ",
          /* @__PURE__ */ a3("button", { class: "quiet", onClick: () => change({ max: String(m3.followed.fits_at) }), children: [
            count(m3.followed.fits_at),
            " characters"
          ] }),
          " it would stay."
        ] }) : `No larger budget up to ${count(Math.max(data.max_chars, ...m3.tried_budgets ?? []))} characters shows it: another query may.`
      ] })
    ] }),
    /* @__PURE__ */ a3("span", { class: "space" }),
    /* @__PURE__ */ a3("button", { class: "quiet", onClick: () => change({ follow: void 0 }), "aria-label": "Follow no event", children: "✕" })
  ] });
}

// src/served.tsx
var remade = (c3, seq) => path("/v1/conversations/{}/contexts/{}", [c3.id, String(seq)]);
var whyDifferent = "A source of it was erased or is missing, or this version of mneme chooses differently.";
function parameters(s3) {
  return {
    served: String(s3.seq),
    as_of: String(s3.as_of),
    q: s3.query,
    max: String(s3.max_chars),
    strategy: s3.strategy,
    condense: s3.condense,
    memory: s3.project_memory ? "on" : "off",
    embedded: s3.embedded_up_to ? String(s3.embedded_up_to) : void 0
  };
}
function ServedContexts({ c: c3 }) {
  const { list, error, loading, more } = usePages(path("/v1/conversations/{}/contexts", [c3.id], { limit: 50 }), "contexts");
  const [results, set] = d2({});
  const [checking, setChecking] = d2(false);
  const check = async (some) => {
    setChecking(true);
    for (const s3 of some) {
      const result = await getJSON(remade(c3, s3.seq)).catch((e3) => e3);
      set((before2) => ({ ...before2, [s3.seq]: result }));
    }
    setChecking(false);
  };
  return /* @__PURE__ */ a3("div", { class: "pad", children: [
    /* @__PURE__ */ a3("div", { class: "bar", children: [
      /* @__PURE__ */ a3(Notice, { error, children: loading && list.length === 0 ? "Loading…" : list.length === 0 ? "None yet. Only contexts requested with record=true are listed here; in the tab Context, “Remember this” adds one." : `${plural(list.length, "context")}${more ? " so far" : ""} shown to agents, oldest first` }),
      /* @__PURE__ */ a3("span", { class: "space" }),
      list.length > 0 && /* @__PURE__ */ a3("button", { disabled: checking, onClick: () => void check(list), children: checking ? "Checking…" : "Check all" })
    ] }),
    list.length > 0 && /* @__PURE__ */ a3("div", { class: "scroll-x", tabIndex: 0, role: "region", "aria-label": "Served contexts", children: /* @__PURE__ */ a3("table", { children: [
      /* @__PURE__ */ a3("thead", { children: /* @__PURE__ */ a3("tr", { children: [
        /* @__PURE__ */ a3("th", { children: "Shown at" }),
        /* @__PURE__ */ a3("th", { children: "Query" }),
        /* @__PURE__ */ a3("th", { class: "n", children: "As of" }),
        /* @__PURE__ */ a3("th", { class: "n", children: "Characters" }),
        /* @__PURE__ */ a3("th", { children: "Strategy" }),
        /* @__PURE__ */ a3("th", { children: "SHA-256" }),
        /* @__PURE__ */ a3("th", { children: "Rebuilt" }),
        /* @__PURE__ */ a3("th", { children: "Event" })
      ] }) }),
      /* @__PURE__ */ a3("tbody", { children: list.map((s3) => /* @__PURE__ */ a3("tr", { children: [
        /* @__PURE__ */ a3("td", { class: "nowrap", children: /* @__PURE__ */ a3("a", { href: link({ c: c3.id, view: "context", ...parameters(s3) }), children: s3.time ? /* @__PURE__ */ a3(Time, { of: s3.time }) : `#${s3.seq}` }) }),
        /* @__PURE__ */ a3("td", { class: "query", children: /* @__PURE__ */ a3(Text, { of: firstLine(s3.query || "what the user said last", 90) }) }),
        /* @__PURE__ */ a3("td", { class: "n", children: [
          "#",
          s3.as_of
        ] }),
        /* @__PURE__ */ a3("td", { class: "n", children: [
          count(s3.chars),
          " of ",
          count(s3.max_chars)
        ] }),
        /* @__PURE__ */ a3("td", { children: [
          s3.strategy,
          s3.format && /* @__PURE__ */ a3("span", { class: "dim", children: [
            " as ",
            s3.format
          ] })
        ] }),
        /* @__PURE__ */ a3("td", { children: /* @__PURE__ */ a3("code", { title: s3.hash, children: s3.hash.slice(0, 10) }) }),
        /* @__PURE__ */ a3("td", { class: "nowrap", children: [
          /* @__PURE__ */ a3(Outcome, { of: results[s3.seq] }),
          !sure(results[s3.seq]) && /* @__PURE__ */ a3("button", { class: "quiet", disabled: checking, onClick: () => void check([s3]), children: "Check" })
        ] }),
        /* @__PURE__ */ a3("td", { children: /* @__PURE__ */ a3(EventLink, { seq: s3.seq }) })
      ] }, s3.seq)) })
    ] }) }),
    Object.values(results).some((r3) => "equal" in r3 && !r3.equal) && /* @__PURE__ */ a3(Notice, { children: [
      "Why a context may differ: ",
      whyDifferent
    ] }),
    more && /* @__PURE__ */ a3("button", { onClick: more, children: "Show more" })
  ] });
}
var sure = (r3) => r3 !== void 0 && !(r3 instanceof Error);
function Outcome({ of }) {
  if (!of) return null;
  if (of instanceof Error) return /* @__PURE__ */ a3("span", { class: "state bad", children: of.message });
  return of.equal ? /* @__PURE__ */ a3("span", { class: "state good", children: "equal" }) : /* @__PURE__ */ a3("span", { class: "state bad", title: `now ${of.hash}`, children: "differs" });
}
function ServedBanner({ c: c3, seq }) {
  const { data, error } = useGet(remade(c3, seq));
  if (!data) return /* @__PURE__ */ a3(Notice, { error, children: "Rebuilding it…" });
  return /* @__PURE__ */ a3("p", { class: "notice banner", role: "status", children: [
    "An agent was shown this context",
    data.served.time && /* @__PURE__ */ a3($, { children: [
      " at ",
      /* @__PURE__ */ a3(Time, { of: data.served.time })
    ] }),
    " ",
    /* @__PURE__ */ a3(EventLink, { seq: data.served.seq }),
    " ",
    data.equal ? /* @__PURE__ */ a3("span", { class: "state good", children: "Rebuilt: identical to the byte." }) : /* @__PURE__ */ a3($, { children: [
      /* @__PURE__ */ a3("span", { class: "state bad", children: "Rebuilt: it differs." }),
      " ",
      whyDifferent
    ] })
  ] });
}

// src/steps.tsx
var pause = 900;
var words2 = {
  states: { gone: "left", new: "entered", shorter: "shortened", longer: "grew", moved: "moved" },
  first: "before",
  second: "now",
  notInFirst: "there was no room for it, or it ranked too low",
  notInSecond: "there is no more room for it, or it ranks too low"
};
function Steps({ c: c3, outline: o4, p: p3, data }) {
  const [playing, play] = d2(false);
  const asOf2 = Number(p3["as_of"] ?? c3.last_seq);
  const turn = o4.turnAt(asOf2);
  const there = (n2) => o4.has(n2) && n2 >= o4.first && n2 <= o4.last && o4.end(n2) >= c3.first_seq;
  const to = (n2) => {
    if (there(n2)) change({ as_of: n2 >= o4.last ? void 0 : String(o4.end(n2)), step: "1", served: void 0 }, true);
  };
  const shown3 = data?.as_of === asOf2;
  A2(() => {
    if (!playing || !shown3) return;
    if (turn >= o4.last) {
      play(false);
      return;
    }
    const timer = setTimeout(() => to(turn + 1), pause);
    return () => clearTimeout(timer);
  }, [playing, shown3, turn]);
  const toggle = () => {
    if (!playing && turn >= o4.last) to(Math.max(o4.first, o4.known, o4.turnAt(c3.first_seq)));
    play(!playing);
  };
  A2(() => {
    const press = (e3) => {
      if (e3.target.matches("input, select, textarea") || e3.ctrlKey || e3.metaKey || e3.altKey) return;
      if (e3.key === "[") to(turn - 1);
      else if (e3.key === "]") to(turn + 1);
      else if (e3.key === "p") toggle();
      else return;
      e3.preventDefault();
    };
    addEventListener("keydown", press);
    return () => removeEventListener("keydown", press);
  });
  const open = p3["step"] === "1", before2 = there(turn - 1) ? o4.end(turn - 1) : 0;
  if (o4.turns === 0) return null;
  return /* @__PURE__ */ a3("section", { class: "steps", "aria-label": "Turn by turn", children: [
    /* @__PURE__ */ a3("div", { class: "bar", children: [
      /* @__PURE__ */ a3("button", { onClick: () => to(turn - 1), disabled: !there(turn - 1), "aria-label": "One turn back", title: "One turn back: [", children: "◀" }),
      /* @__PURE__ */ a3("button", { class: playing ? "primary" : "", onClick: toggle, title: "p", children: playing ? "Pause" : "Play" }),
      /* @__PURE__ */ a3("button", { onClick: () => to(turn + 1), disabled: turn >= o4.last, "aria-label": "One turn on", title: "One turn on: ]", children: "▶" }),
      /* @__PURE__ */ a3("span", { children: [
        "after turn ",
        /* @__PURE__ */ a3("b", { children: count(turn) }),
        " of ",
        count(o4.last)
      ] }),
      /* @__PURE__ */ a3("span", { class: "space" }),
      /* @__PURE__ */ a3("button", { "aria-expanded": open, onClick: () => change({ step: open ? void 0 : "1" }, true), children: open ? "Hide what the turn changed" : "Show what the turn changed" })
    ] }),
    open && (before2 === 0 ? /* @__PURE__ */ a3(Notice, { children: "This is the first turn." }) : /* @__PURE__ */ a3(Changes, { c: c3, p: p3, before: before2, turn, data }))
  ] });
}
function Changes({ c: c3, p: p3, before: before2, turn, data }) {
  const { data: earlier, error } = useGet(path("/v1/conversations/{}/context", [c3.id], { ...contextQuery(p3), as_of: before2, explain: "true" }));
  if (error || !earlier || !data) return /* @__PURE__ */ a3(Notice, { error, children: "Loading…" });
  if (earlier.as_of >= data.as_of) return null;
  const d3 = differences(earlier, data, words2);
  const of = (state) => d3.list.filter((x2) => x2.state === state).length;
  const counts = Object.entries(words2.states).map(([state, name]) => [of(state), name]).filter(([n2]) => n2 > 0).map(([n2, name]) => `${count(n2)} ${name}`);
  return /* @__PURE__ */ a3("details", { class: "changes", open: p3["list"] === "1", onToggle: (e3) => change({ list: e3.currentTarget.open ? "1" : void 0 }, true), children: [
    /* @__PURE__ */ a3("summary", { children: counts.length === 0 ? `Turn ${turn} changed nothing.` : `Turn ${turn}: ${counts.join(", ")}; ${count(d3.same)} stayed.` }),
    /* @__PURE__ */ a3(Differences, { list: d3.list, words: words2 })
  ] });
}

// src/context.tsx
var formats = [["", "Lines and reasons"], ["bytes", "Exact text"], ["anthropic", "Messages (Anthropic)"], ["openai", "Messages (OpenAI)"]];
function ContextView({ c: c3, outline, p: p3 }) {
  const query = contextQuery(p3);
  const url = path("/v1/conversations/{}/context", [c3.id], { ...query, explain: "true", include_markdown: true });
  const { data, error, loading } = useGet(url);
  const m3 = data?.manifest;
  const shown3 = p3["show"] ?? "";
  return /* @__PURE__ */ a3("div", { class: "context", children: [
    /* @__PURE__ */ a3(Controls, { c: c3, p: p3, name: "Parameters of the context" }),
    /* @__PURE__ */ a3(Steps, { c: c3, outline, p: p3, data }),
    p3["served"] && /* @__PURE__ */ a3(ServedBanner, { c: c3, seq: p3["served"] }),
    error && /* @__PURE__ */ a3(Notice, { error }),
    data && m3 && /* @__PURE__ */ a3("div", { "aria-busy": loading, children: [
      p3["follow"] && /* @__PURE__ */ a3(Followed, { c: c3, p: p3, data, seq: Number(p3["follow"]) }),
      /* @__PURE__ */ a3(Budget, { data, lines: shown3 === "", left: true }),
      /* @__PURE__ */ a3("div", { class: "bar formats", children: [
        /* @__PURE__ */ a3("div", { role: "group", "aria-label": "Show as", class: "choice", children: formats.map(([f4, name]) => /* @__PURE__ */ a3("button", { "aria-pressed": f4 === shown3, onClick: () => change({ show: f4 }), children: name }, f4)) }),
        /* @__PURE__ */ a3("span", { class: "space" }),
        /* @__PURE__ */ a3(Remember, { c: c3, query }, url),
        /* @__PURE__ */ a3("a", { href: link({ c: c3.id, view: "compare", ...keep(p3), ...keep(p3, "_b") }), children: "Compare with another" })
      ] }),
      shown3 === "bytes" ? /* @__PURE__ */ a3(Bytes, { data }) : shown3 === "anthropic" || shown3 === "openai" ? /* @__PURE__ */ a3(Messages, { c: c3, query, format: shown3 }) : /* @__PURE__ */ a3(Lines, { data, of: c3.id, followed: Number(p3["follow"]) }),
      /* @__PURE__ */ a3(LeftOut, { c: c3, p: p3, data })
    ] }),
    !data && !error && /* @__PURE__ */ a3(Notice, { children: "Loading…" })
  ] });
}
function keep(p3, suffix = "") {
  return Object.fromEntries(["q", "max", "strategy", "condense", "as_of", "memory", "embedded"].map((name) => [name + suffix, p3[name]]));
}
function Remember({ c: c3, query }) {
  const access = useAccess();
  const [done, set] = d2({});
  const remember = () => ask(path("/v1/conversations/{}/context", [c3.id], { ...query, record: true })).then(
    (answer) => set({ seq: Number(answer.headers.get("Mneme-Context-Seq")) }),
    (error) => set({ error })
  );
  if (lacks(access, "write") !== void 0) return null;
  if (done.seq) return /* @__PURE__ */ a3("span", { role: "status", children: [
    "Remembered as ",
    /* @__PURE__ */ a3(EventLink, { seq: done.seq }),
    ", see ",
    /* @__PURE__ */ a3("a", { href: link({ c: c3.id, view: "served" }), children: "Served" })
  ] });
  return /* @__PURE__ */ a3($, { children: [
    done.error && /* @__PURE__ */ a3(Notice, { error: done.error }),
    /* @__PURE__ */ a3("button", { class: "quiet", onClick: () => void remember(), title: "Store a small event, so that this context can be made again and checked", children: "Remember this" })
  ] });
}
function Messages({ c: c3, query, format }) {
  const { data, error } = useGet(
    path("/v1/conversations/{}/context", [c3.id], { ...query, format })
  );
  if (!data) return /* @__PURE__ */ a3(Notice, { error, children: "Loading…" });
  const list = data.system ? [{ role: "system", content: data.system }, ...data.messages] : data.messages;
  return /* @__PURE__ */ a3("section", { "aria-label": "Messages for a model", children: list.map((m3, i3) => {
    const { role, content, ...rest } = m3;
    return /* @__PURE__ */ a3("article", { class: `message ${role}`, children: [
      /* @__PURE__ */ a3("header", { children: /* @__PURE__ */ a3("b", { children: role }) }),
      blocks(content).map((b, j2) => /* @__PURE__ */ a3("pre", { class: "said", children: /* @__PURE__ */ a3(Text, { of: b }) }, j2)),
      Object.keys(rest).length > 0 && /* @__PURE__ */ a3("pre", { children: /* @__PURE__ */ a3(Text, { of: JSON.stringify(rest, null, 2) }) })
    ] }, i3);
  }) });
}
function blocks(content) {
  if (typeof content === "string") return [content];
  if (!Array.isArray(content)) return content == null ? [] : [JSON.stringify(content, null, 2)];
  return content.map((b) => b["type"] === "text" && typeof b["text"] === "string" ? b["text"] : JSON.stringify(b, null, 2));
}
function LeftOut({ c: c3, p: p3, data }) {
  const open = p3["left"] === "1";
  const tried = useGet(open ? path("/v1/conversations/{}/context", [c3.id], { ...contextQuery(p3), explain: "candidates" }) : null, 400);
  return /* @__PURE__ */ a3("section", { class: "left", id: "left", "aria-label": "Left out", children: [
    /* @__PURE__ */ a3("div", { class: "bar", children: [
      /* @__PURE__ */ a3("h2", { children: "Left out" }),
      /* @__PURE__ */ a3("span", { class: "space" }),
      /* @__PURE__ */ a3("button", { "aria-expanded": open, onClick: () => change({ left: open ? void 0 : "1" }, true), children: open ? "Hide the items" : "Show the items, and when they fit" })
    ] }),
    /* @__PURE__ */ a3(Dropped, { data }),
    open && !tried.data && /* @__PURE__ */ a3(Notice, { error: tried.error, children: "Trying larger budgets…" }),
    tried.data?.manifest?.sections.filter((s3) => s3.candidates?.length).map((s3) => /* @__PURE__ */ a3("div", { class: "scroll-x", tabIndex: 0, role: "region", "aria-label": `Left out of ${sectionName(s3.name)}`, children: /* @__PURE__ */ a3("table", { children: [
      /* @__PURE__ */ a3("caption", { children: sectionName(s3.name) }),
      /* @__PURE__ */ a3("thead", { children: /* @__PURE__ */ a3("tr", { children: [
        /* @__PURE__ */ a3("th", { children: "Event" }),
        /* @__PURE__ */ a3("th", { children: "Text" }),
        /* @__PURE__ */ a3("th", { class: "n", children: "Characters" }),
        /* @__PURE__ */ a3("th", { class: "n", children: "Score" }),
        /* @__PURE__ */ a3("th", { children: "Fits at" })
      ] }) }),
      /* @__PURE__ */ a3("tbody", { children: s3.candidates.map((x2, i3) => /* @__PURE__ */ a3("tr", { children: [
        /* @__PURE__ */ a3("td", { children: /* @__PURE__ */ a3(EventLink, { seq: x2.seq }) }),
        /* @__PURE__ */ a3("td", { children: [
          x2.path ? /* @__PURE__ */ a3("span", { class: "path", children: [
            /* @__PURE__ */ a3(Text, { of: x2.path }),
            " "
          ] }) : null,
          /* @__PURE__ */ a3(Text, { of: firstLine(x2.text, 130) }),
          /* @__PURE__ */ a3("span", { class: "dim", children: [
            " turn ",
            x2.turn,
            ", ",
            x2.reason
          ] })
        ] }),
        /* @__PURE__ */ a3("td", { class: "n", children: count(x2.chars) }),
        /* @__PURE__ */ a3("td", { class: "n", children: x2.match ? x2.match.score.toFixed(2) : "" }),
        /* @__PURE__ */ a3("td", { children: x2.fits_at ? /* @__PURE__ */ a3("button", { class: "quiet", onClick: () => change({ max: String(x2.fits_at) }), children: count(x2.fits_at) }) : "none tried" })
      ] }, i3)) })
    ] }) }, s3.name))
  ] });
}

// src/files.tsx
function Files({ c: c3 }) {
  const { data, error } = useGet(path("/v1/conversations/{}/files", [c3.id], { limit: 500 }));
  return /* @__PURE__ */ a3("div", { class: "pad", children: [
    /* @__PURE__ */ a3(Notice, { error, children: data ? `${plural(data.files.length, "file")} touched by tools, most recent first` : "Loading…" }),
    data && data.files.length > 0 && /* @__PURE__ */ a3("div", { class: "scroll-x", tabIndex: 0, role: "region", "aria-label": "Files", children: /* @__PURE__ */ a3("table", { children: [
      /* @__PURE__ */ a3("thead", { children: /* @__PURE__ */ a3("tr", { children: [
        /* @__PURE__ */ a3("th", { children: "File" }),
        /* @__PURE__ */ a3("th", { children: "Last" }),
        /* @__PURE__ */ a3("th", { children: "Tool" }),
        /* @__PURE__ */ a3("th", { class: "n", children: "Turn" }),
        /* @__PURE__ */ a3("th", { class: "n", children: "Times" }),
        /* @__PURE__ */ a3("th", { children: "Event" })
      ] }) }),
      /* @__PURE__ */ a3("tbody", { children: data.files.map((f4) => /* @__PURE__ */ a3("tr", { children: [
        /* @__PURE__ */ a3("td", { class: "path", children: /* @__PURE__ */ a3(Text, { of: f4.path }) }),
        /* @__PURE__ */ a3("td", { children: f4.kind }),
        /* @__PURE__ */ a3("td", { children: /* @__PURE__ */ a3(Text, { of: f4.tool }) }),
        /* @__PURE__ */ a3("td", { class: "n", children: /* @__PURE__ */ a3(TurnLink, { of: c3.id, turn: f4.turn, event: f4.seq }) }),
        /* @__PURE__ */ a3("td", { class: "n", children: f4.count }),
        /* @__PURE__ */ a3("td", { children: /* @__PURE__ */ a3(EventLink, { seq: f4.seq }) })
      ] }, f4.path)) })
    ] }) })
  ] });
}

// src/layout.ts
var mostNodes = 240;
var mostFiles = 60;
var rowHeight = 34;
var columns2 = [{ x: 8, width: 130 }, { x: 176, width: 110 }, { x: 324, width: 290 }, { x: 652, width: 130 }, { x: 820, width: 220 }];
var width = 1050;
function node(column, kind, id, label, title, open) {
  return { id, column, y: 0, kind, label, title, open, children: [] };
}
function callsOf(s3) {
  const byTool = Map.groupBy(s3.tool_calls ?? [], (call) => call.tool_name);
  return [...byTool].map(([tool, calls2]) => {
    const failed = calls2.filter(hasFailed).length;
    const n2 = node(
      3,
      "call",
      `call ${calls2[0].seq}`,
      calls2.length > 1 ? `${tool} × ${calls2.length}` : tool,
      `${plural(calls2.length, "call")} of ${tool}${failed ? `, ${failed} failed` : ""}`,
      { event: String(calls2[0].seq) }
    );
    n2.failed = failed > 0;
    return n2;
  });
}
function turnOf(t3, steps) {
  const turn = node(1, "turn", `turn ${t3.number}`, `turn ${t3.number}`, "open it in the timeline", { view: void 0, turn: String(t3.number), event: void 0 });
  if (t3.user_message) {
    const { seq, content } = t3.user_message;
    turn.children.push(node(2, "user", `message ${seq}`, firstLine(content ?? "", 80), "message of the user", { event: String(seq) }));
  }
  for (const s3 of steps) {
    const calls2 = callsOf(s3);
    const open = s3.message ? { event: String(s3.message.seq) } : calls2[0]?.open;
    if (!open) continue;
    const text = firstLine(s3.message?.content || s3.message?.reasoning || "", 80) || (calls2.length > 0 ? "(calls only)" : "(no text)");
    const message = node(2, "assistant", `message ${open["event"]}`, text, "message of the assistant", open);
    message.children = calls2;
    turn.children.push(message);
  }
  return turn;
}
var size = (n2) => n2.children.reduce((sum, child) => sum + size(child), 1);
function draw(c3, turns, steps, files) {
  const root = node(0, "conversation", "conversation", c3.title || c3.id, "the conversation", { view: void 0, event: void 0 });
  let free = mostNodes - 1, first = 0, whole = true;
  for (const t3 of turns) {
    const turn = turnOf(t3, steps.filter((s3) => s3.turn === t3.number));
    if (root.children.length === 0) {
      while (size(turn) > free) {
        turn.children.splice(1, 1);
        whole = false;
      }
    } else if (size(turn) > free) break;
    free -= size(turn);
    first = t3.number;
    root.children.unshift(turn);
  }
  const drawn = { root, nodes: [root], edges: [], height: 0, first, whole };
  let y3 = rowHeight / 2;
  const place = (n2) => {
    for (const child of n2.children) {
      drawn.edges.push([n2, child]);
      drawn.nodes.push(child);
      place(child);
    }
    n2.y = n2.children[0]?.y ?? y3;
    if (n2.children.length === 0) y3 += rowHeight;
  };
  place(root);
  drawn.height = Math.max(y3, addFiles(drawn, files));
  return drawn;
}
function addFiles(drawn, files) {
  const found = [];
  for (const f4 of files) {
    const turn = drawn.root.children.find((t3) => t3.id === `turn ${f4.turn}`);
    const call = turn?.children.flatMap((m3) => m3.children).filter((k2) => k2.label === f4.tool || k2.label.startsWith(f4.tool + " × ")).at(-1);
    if (call && found.length < mostFiles) found.push([call, node(4, "file", `file ${f4.turn} ${f4.path}`, shortPath(f4.path), `${f4.path}, ${f4.kind}`, { event: String(f4.seq) })]);
  }
  let next = rowHeight / 2;
  for (const [call, file] of found.sort(([a4, f4], [b, g3]) => a4.y - b.y || (f4.id < g3.id ? -1 : 1))) {
    file.y = Math.max(next, call.y);
    next = file.y + rowHeight;
    call.children.push(file);
    drawn.nodes.push(file);
    drawn.edges.push([call, file]);
  }
  return next;
}

// src/graph.tsx
var mostTurns = 8;
var mostSteps = 120;
function useFiles(c3, turns) {
  const [files, set] = d2([]);
  A2(() => {
    const control = new AbortController();
    set([]);
    for (const { number, last_seq } of turns) {
      asOf(c3, last_seq, "/v1/conversations/{}/files", { limit: 12, kind: ["read", "write"] }).then((url) => getJSON(url, control.signal)).then(
        (answer) => set((before2) => [...before2, ...answer.files.filter((f4) => f4.turn === number)]),
        () => {
        }
      );
    }
    return () => control.abort();
  }, [c3, turns.map((t3) => t3.number).join()]);
  return files;
}
function Graph({ c: c3, outline: o4, p: p3 }) {
  const asked2 = Number(p3["turn"] ?? NaN);
  const last = Math.min(o4.last, Math.max(o4.first, isNaN(asked2) ? o4.last : asked2));
  const ready = o4.has(last);
  const key = ready ? `${c3.id} ${last}` : null, end = o4.end(last);
  const turns = useGetLater(key, () => asOf(c3, end, "/v1/conversations/{}/turns", { limit: mostTurns }));
  const steps = useGetLater(key, () => asOf(c3, end, "/v1/conversations/{}/steps", { limit: mostSteps }));
  const files = useFiles(c3, turns.data?.turns ?? []);
  const error = o4.error ?? turns.error ?? steps.error;
  if (o4.turns === 0) return /* @__PURE__ */ a3("div", { class: "pad", children: /* @__PURE__ */ a3(Notice, { children: "No turns yet: a turn begins with a user message." }) });
  if (!turns.data || !steps.data) return /* @__PURE__ */ a3("div", { class: "pad", children: /* @__PURE__ */ a3(Notice, { error, children: "Loading…" }) });
  const list = steps.data.steps.slice().reverse();
  const reached = steps.data.steps.length < mostSteps ? turns.data.turns : turns.data.turns.filter((t3, i3) => i3 === 0 || t3.number > list[0].turn);
  const g3 = draw(c3, reached, list, files);
  const to = (turn) => change({ turn: turn >= o4.last ? void 0 : String(Math.max(o4.first, turn)) }, true);
  return /* @__PURE__ */ a3("div", { class: "pad graph", children: [
    /* @__PURE__ */ a3("div", { class: "bar", children: [
      /* @__PURE__ */ a3("button", { onClick: () => to(g3.first - 1), disabled: g3.first <= o4.first, children: "Earlier turns" }),
      /* @__PURE__ */ a3("button", { onClick: () => to(last + mostTurns), disabled: last >= o4.last, children: "Later turns" }),
      /* @__PURE__ */ a3("span", { children: [
        "turns ",
        /* @__PURE__ */ a3("b", { children: count(g3.first) }),
        " to ",
        /* @__PURE__ */ a3("b", { children: count(last) }),
        " of ",
        count(o4.last),
        !g3.whole && /* @__PURE__ */ a3("span", { class: "dim", children: "; the first messages are not drawn" })
      ] }),
      /* @__PURE__ */ a3("span", { class: "space" }),
      /* @__PURE__ */ a3("span", { class: "dim", children: "Arrow keys move, Enter opens." })
    ] }),
    /* @__PURE__ */ a3(Drawing, { g: g3, shown: p3["event"] }),
    /* @__PURE__ */ a3("details", { class: "aslist", children: [
      /* @__PURE__ */ a3("summary", { children: "As a list" }),
      /* @__PURE__ */ a3(ListOf, { nodes: [g3.root] })
    ] })
  ] });
}
function Drawing({ g: g3, shown: shown3 }) {
  const box = T2(null);
  const zoom = useTextScale();
  const keys2 = (e3) => {
    const step = { ArrowUp: [0, -1], ArrowDown: [0, 1], ArrowLeft: [-1, 0], ArrowRight: [1, 0] }[e3.key];
    const here = g3.nodes.find((n2) => n2.id === e3.target.dataset["node"]);
    if (!step || !here) return;
    e3.preventDefault();
    const [across, down] = step;
    const near = g3.nodes.filter((n2) => n2 !== here && n2.column === here.column + across && (across !== 0 || (n2.y - here.y) * down > 0)).sort((a4, b) => Math.abs(a4.y - here.y) - Math.abs(b.y - here.y))[0];
    if (near) box.current?.querySelector(`[data-node="${CSS.escape(near.id)}"]`)?.focus();
  };
  return /* @__PURE__ */ a3("div", { class: "scroll-x", role: "region", "aria-label": "Graph", tabIndex: 0, children: /* @__PURE__ */ a3("div", { class: "drawing", ref: box, style: { width: `${width}px`, height: `${g3.height}px`, zoom }, onKeyDown: keys2, children: [
    /* @__PURE__ */ a3("svg", { width, height: g3.height, "aria-hidden": "true", children: g3.edges.map(([a4, b]) => {
      const from = columns2[a4.column].x + columns2[a4.column].width, to = columns2[b.column].x, middle = (from + to) / 2;
      return /* @__PURE__ */ a3("path", { d: `M${from} ${a4.y}C${middle} ${a4.y} ${middle} ${b.y} ${to} ${b.y}` }, `${a4.id} ${b.id}`);
    }) }),
    g3.nodes.map((n2) => /* @__PURE__ */ a3(
      "button",
      {
        "data-node": n2.id,
        tabIndex: n2 === g3.root ? 0 : -1,
        class: `node k-${n2.kind} ${n2.failed ? "failed" : ""}`,
        title: n2.title,
        "aria-pressed": n2.open["event"] ? n2.open["event"] === shown3 : void 0,
        style: { left: `${columns2[n2.column].x}px`, top: `${n2.y - 13}px`, width: `${columns2[n2.column].width}px` },
        onClick: () => change(n2.open),
        children: [
          n2.failed && /* @__PURE__ */ a3("span", { "aria-hidden": "true", children: "✗ " }),
          /* @__PURE__ */ a3(Text, { of: n2.label })
        ]
      },
      n2.id
    ))
  ] }) });
}
function ListOf({ nodes }) {
  return /* @__PURE__ */ a3("ul", { children: nodes.map((n2) => /* @__PURE__ */ a3("li", { children: [
    /* @__PURE__ */ a3("button", { class: "quiet", onClick: () => change(n2.open), children: /* @__PURE__ */ a3(Text, { of: n2.label }) }),
    " ",
    /* @__PURE__ */ a3("span", { class: "dim", children: /* @__PURE__ */ a3(Text, { of: n2.title }) }),
    n2.children.length > 0 && /* @__PURE__ */ a3(ListOf, { nodes: n2.children })
  ] }, n2.id)) });
}

// src/rows.tsx
var spare = 8;
function Rows({ label, count: count2, height: usual, selected, onSelect, onRange, row }) {
  const box = T2(null);
  const height = Math.round(usual * useTextScale());
  const [view, setView] = d2({ top: 0, height: 600 });
  const first = Math.max(0, Math.floor(view.top / height) - spare);
  const last = Math.min(count2 - 1, Math.ceil((view.top + view.height) / height) + spare);
  F2(() => {
    const e3 = box.current;
    const read = () => setView((before2) => before2.top === e3.scrollTop && before2.height === e3.clientHeight ? before2 : { top: e3.scrollTop, height: e3.clientHeight });
    const observer = new ResizeObserver(read);
    observer.observe(e3);
    e3.addEventListener("scroll", read, { passive: true });
    return () => {
      observer.disconnect();
      e3.removeEventListener("scroll", read);
    };
  }, []);
  F2(() => {
    const e3 = box.current;
    if (selected < 0 || selected >= count2) return;
    const y3 = selected * height;
    if (Math.abs(y3 - e3.scrollTop) > 2 * e3.clientHeight) e3.scrollTop = y3 - e3.clientHeight / 2;
    else if (y3 < e3.scrollTop) e3.scrollTop = y3;
    else if (y3 + height > e3.scrollTop + e3.clientHeight) e3.scrollTop = y3 + height - e3.clientHeight;
  }, [selected, count2]);
  const least = T2(view.height);
  F2(() => {
    const e3 = box.current, y3 = selected * height, cut = y3 + height - e3.scrollTop - view.height;
    if (selected >= 0 && cut > 0 && y3 + height <= e3.scrollTop + least.current) e3.scrollTop += cut;
    least.current = view.height;
  }, [view.height]);
  A2(() => {
    if (count2 > 0) onRange?.(first, last);
  }, [first, last, count2]);
  const keys2 = (e3) => {
    const page2 = Math.max(1, Math.floor(view.height / height) - 1);
    const steps = {
      ArrowDown: 1,
      j: 1,
      ArrowUp: -1,
      k: -1,
      PageDown: page2,
      PageUp: -page2,
      Home: -count2,
      End: count2
    };
    const step = steps[e3.key];
    if (step === void 0 || e3.ctrlKey || e3.metaKey || e3.altKey || count2 === 0) return;
    e3.preventDefault();
    e3.stopPropagation();
    onSelect(Math.min(count2 - 1, Math.max(0, selected + step)));
  };
  const shown3 = [];
  for (let i3 = first; i3 <= last; i3++) {
    shown3.push(
      /* @__PURE__ */ a3(
        "div",
        {
          id: `row-${i3}`,
          class: "row",
          role: "option",
          "aria-selected": i3 === selected,
          "aria-posinset": i3 + 1,
          "aria-setsize": count2,
          style: { transform: `translateY(${i3 * height}px)`, height: `${height}px` },
          onClick: () => onSelect(i3),
          children: row(i3)
        },
        i3
      )
    );
  }
  return /* @__PURE__ */ a3(
    "div",
    {
      class: "rows",
      role: "listbox",
      tabIndex: 0,
      "aria-label": label,
      ref: box,
      onKeyDown: keys2,
      "aria-activedescendant": selected >= first && selected <= last ? `row-${selected}` : void 0,
      children: /* @__PURE__ */ a3("div", { role: "presentation", style: { height: `${count2 * height}px` }, children: shown3 })
    }
  );
}

// src/timeline.tsx
function Timeline({ c: c3, outline: o4, p: p3 }) {
  const asked2 = Number(p3["turn"] ?? NaN);
  const turn = Math.min(o4.last, Math.max(o4.first, isNaN(asked2) ? o4.last : asked2));
  if (o4.turns === 0) return /* @__PURE__ */ a3("div", { class: "pad", children: /* @__PURE__ */ a3(Notice, { error: o4.error, children: "No turns yet: a turn begins with a user message." }) });
  return /* @__PURE__ */ a3("div", { class: "timeline", children: [
    /* @__PURE__ */ a3(Strip, { o: o4, turn }),
    o4.error && /* @__PURE__ */ a3(Notice, { error: o4.error }),
    /* @__PURE__ */ a3("div", { class: "panes", children: [
      /* @__PURE__ */ a3(
        Rows,
        {
          label: "Turns",
          count: o4.turns,
          height: 58,
          selected: turn - o4.first,
          onSelect: (i3) => change({ turn: String(i3 + o4.first) }, true),
          onRange: (first, last) => o4.want(first + o4.first, last + o4.first),
          row: (i3) => /* @__PURE__ */ a3(TurnRow, { o: o4, turn: i3 + o4.first })
        }
      ),
      /* @__PURE__ */ a3("section", { class: "turn", "aria-label": `Turn ${turn}`, tabIndex: 0, children: o4.has(turn) ? /* @__PURE__ */ a3(OpenTurn, { c: c3, o: o4, number: turn }, turn) : !o4.error && /* @__PURE__ */ a3(Notice, { children: "Loading…" }) })
    ] }),
    o4.summaries.length > 0 && /* @__PURE__ */ a3(SummaryList, { c: c3, o: o4, turn }, turn)
  ] });
}
function TurnRow({ o: o4, turn }) {
  const known2 = o4.has(turn), text = o4.text(turn);
  return /* @__PURE__ */ a3($, { children: [
    /* @__PURE__ */ a3("span", { class: "number", children: turn }),
    /* @__PURE__ */ a3("span", { class: "what", children: !text ? /* @__PURE__ */ a3("span", { class: "loading", children: "…" }) : turn === 0 ? "Before the first user message" : /* @__PURE__ */ a3($, { children: [
      text.origin && /* @__PURE__ */ a3("span", { class: "badge", children: /* @__PURE__ */ a3(Text, { of: text.origin }) }),
      " ",
      /* @__PURE__ */ a3(Text, { of: text.text || "(no text)" })
    ] }) }),
    /* @__PURE__ */ a3("span", { class: "facts", children: known2 && /* @__PURE__ */ a3($, { children: [
      /* @__PURE__ */ a3(Time, { of: o4.time(turn) }),
      o4.calls(turn) > 0 && /* @__PURE__ */ a3("span", { children: plural(o4.calls(turn), "call") }),
      text?.failed && /* @__PURE__ */ a3("span", { class: "bad-text", children: [
        count(text.failed),
        " failed"
      ] }),
      /* @__PURE__ */ a3("span", { children: [
        count(o4.chars(turn)),
        " characters"
      ] })
    ] }) })
  ] });
}
var bins = 1e3;
function Strip({ o: o4, turn }) {
  const list = o4.summaries.filter((s3) => s3.end >= o4.begin(o4.known));
  const levels = Math.max(0, ...list.map((s3) => s3.level));
  const n2 = o4.turns, lane = 11, ground = 30, width2 = 1e3;
  const height = levels * lane + ground;
  const x2 = (number) => (number - o4.first) / n2 * width2;
  const open = (e3) => {
    const box = e3.currentTarget.getBoundingClientRect();
    change({ turn: String(Math.min(o4.last, o4.first + Math.floor((e3.clientX - box.left) / box.width * n2))) }, true);
  };
  return /* @__PURE__ */ a3("div", { class: "strip", children: [
    /* @__PURE__ */ a3(
      "svg",
      {
        viewBox: `0 0 ${width2} ${height}`,
        preserveAspectRatio: "none",
        style: { height: `${height * 1.3}px` },
        role: "img",
        onClick: open,
        "aria-label": `${plural(n2, "turn")}, ${plural(list.length, "summary", "summaries")} above them; turn ${turn} is open`,
        children: [
          list.map((s3) => {
            const from = o4.turnAt(s3.seq), to = o4.turnAt(s3.end);
            return /* @__PURE__ */ a3(
              "rect",
              {
                class: s3.frontier ? "frontier" : "consolidated",
                x: x2(from),
                y: (levels - s3.level) * lane + 1,
                width: Math.max(1.5, x2(to + 1) - x2(from) - 1),
                height: lane - 3,
                rx: "2",
                children: /* @__PURE__ */ a3("title", { children: `level ${s3.level}, turns ${from} to ${to}` })
              },
              s3.id
            );
          }),
          /* @__PURE__ */ a3("path", { class: "sizes", d: sizes(o4, x2, height, ground - 4) }),
          /* @__PURE__ */ a3("rect", { class: "here", x: x2(turn), y: 0, width: Math.max(3, width2 / n2), height })
        ]
      }
    ),
    /* @__PURE__ */ a3("p", { class: "legend", children: [
      /* @__PURE__ */ a3("span", { children: [
        /* @__PURE__ */ a3("i", { class: "sizes" }),
        " characters of a turn"
      ] }),
      list.length > 0 && /* @__PURE__ */ a3($, { children: [
        /* @__PURE__ */ a3("span", { children: [
          /* @__PURE__ */ a3("i", { class: "frontier" }),
          " summary"
        ] }),
        /* @__PURE__ */ a3("span", { children: [
          /* @__PURE__ */ a3("i", { class: "consolidated" }),
          " summary within a higher one"
        ] })
      ] }),
      /* @__PURE__ */ a3("span", { children: [
        /* @__PURE__ */ a3("i", { class: "here" }),
        " selected turn"
      ] })
    ] })
  ] });
}
function sizes(o4, x2, bottom, height) {
  const step = Math.max(1, o4.turns / bins);
  const longest2 = [];
  for (let from = o4.first; from <= o4.last; from += step) {
    let chars = 0;
    for (let n2 = Math.max(o4.known, Math.floor(from)); n2 < Math.max(from + step, Math.floor(from) + 1) && n2 <= o4.last; n2++) chars = Math.max(chars, o4.chars(n2));
    longest2.push({ from, chars });
  }
  const top = Math.max(1, ...longest2.map((l3) => l3.chars));
  return longest2.filter((l3) => l3.chars > 0).map((l3) => {
    const left = x2(l3.from).toFixed(1), gap = o4.turns < 200 ? 1 : 0, high = Math.max(1, Math.sqrt(l3.chars / top) * height).toFixed(1);
    return `M${left} ${bottom}v-${high}h${Math.max(0.8, x2(l3.from + step) - x2(l3.from) - gap).toFixed(1)}v${high}z`;
  }).join("");
}
function SummaryList({ c: c3, o: o4, turn }) {
  const [open, setOpen] = d2(false);
  const over = o4.summaries.filter((s3) => s3.seq <= o4.end(turn) && s3.end >= o4.begin(turn)).sort((a4, b) => a4.level - b.level).slice(0, 20);
  if (over.length === 0) return null;
  return /* @__PURE__ */ a3("details", { class: "summaries", onToggle: (e3) => setOpen(e3.currentTarget.open), children: [
    /* @__PURE__ */ a3("summary", { children: [
      plural(over.length, "summary covers", "summaries cover"),
      " turn ",
      turn
    ] }),
    open && over.map((s3) => /* @__PURE__ */ a3(OneSummary, { c: c3, s: s3 }, s3.id))
  ] });
}
function OneSummary({ c: c3, s: s3 }) {
  const { data: found, error } = useGet(path("/v1/conversations/{}/summaries/{}", [c3.id, s3.id]));
  if (!found) return /* @__PURE__ */ a3(Notice, { error, children: "Loading…" });
  return /* @__PURE__ */ a3("article", { children: [
    /* @__PURE__ */ a3("h3", { children: [
      "Level ",
      found.level,
      ", turns ",
      found.first_turn,
      " to ",
      found.last_turn,
      " ",
      /* @__PURE__ */ a3("span", { class: "dim", children: [
        found.method,
        s3.frontier ? "" : ", part of a higher summary"
      ] }),
      " ",
      /* @__PURE__ */ a3(EventLink, { seq: found.seq })
    ] }),
    /* @__PURE__ */ a3("p", { children: /* @__PURE__ */ a3(Text, { of: found.conversation }) }),
    found.actions && /* @__PURE__ */ a3("p", { class: "dim", children: /* @__PURE__ */ a3(Text, { of: found.actions }) })
  ] });
}
function OpenTurn({ c: c3, o: o4, number }) {
  const user = useGetLater(number > 0 ? `${c3.id} ${number}` : null, () => asOf(c3, o4.end(number), "/v1/conversations/{}/turns", { limit: 1 }));
  const steps = usePages(path("/v1/conversations/{}/steps", [c3.id], { turn: number, order: "oldest", limit: 30, include_reasoning: true }), "steps");
  const said2 = user.data?.turns.find((t3) => t3.number === number)?.user_message;
  return /* @__PURE__ */ a3($, { children: [
    /* @__PURE__ */ a3("div", { class: "bar", children: [
      /* @__PURE__ */ a3("h2", { children: [
        "Turn ",
        number
      ] }),
      /* @__PURE__ */ a3("span", { class: "space" }),
      o4.end(number) >= c3.first_seq && /* @__PURE__ */ a3("a", { href: link({ c: c3.id, view: "context", as_of: String(o4.end(number)), step: "1" }), children: "Context after this turn" }),
      /* @__PURE__ */ a3("a", { href: link({ c: c3.id, view: "graph", turn: String(number) }), children: "Graph" })
    ] }),
    user.error && /* @__PURE__ */ a3(Notice, { error: user.error }),
    said2 && /* @__PURE__ */ a3("article", { class: "message user", children: [
      /* @__PURE__ */ a3("header", { children: [
        /* @__PURE__ */ a3("b", { children: /* @__PURE__ */ a3(Text, { of: said2.speaker ?? said2.role }) }),
        said2.origin && /* @__PURE__ */ a3("span", { class: "badge", children: /* @__PURE__ */ a3(Text, { of: said2.origin }) }),
        /* @__PURE__ */ a3(Time, { of: said2.time }),
        /* @__PURE__ */ a3(EventLink, { seq: said2.seq })
      ] }),
      /* @__PURE__ */ a3(Long, { of: said2.content ?? "" })
    ] }),
    steps.list.map((s3, i3) => /* @__PURE__ */ a3("div", { children: [
      s3.message && (s3.message.content || s3.message.reasoning) && /* @__PURE__ */ a3("article", { class: "message", children: [
        /* @__PURE__ */ a3("header", { children: [
          /* @__PURE__ */ a3("b", { children: /* @__PURE__ */ a3(Text, { of: s3.message.speaker ?? s3.message.role }) }),
          /* @__PURE__ */ a3(Time, { of: s3.message.time }),
          /* @__PURE__ */ a3(EventLink, { seq: s3.message.seq })
        ] }),
        s3.message.reasoning && /* @__PURE__ */ a3("details", { children: [
          /* @__PURE__ */ a3("summary", { children: "Reasoning" }),
          /* @__PURE__ */ a3(Long, { of: s3.message.reasoning })
        ] }),
        /* @__PURE__ */ a3(Long, { of: s3.message.content ?? "" })
      ] }),
      s3.tool_calls?.map((call) => /* @__PURE__ */ a3(Call, { call }, call.seq))
    ] }, i3)),
    (steps.loading || steps.error) && /* @__PURE__ */ a3(Notice, { error: steps.error, children: "Loading…" }),
    steps.more && /* @__PURE__ */ a3("button", { onClick: steps.more, children: "Show more of this turn" })
  ] });
}
var fold = 900;
function Long({ of }) {
  if (of.length <= fold) return /* @__PURE__ */ a3("pre", { class: "said", children: /* @__PURE__ */ a3(Text, { of }) });
  return /* @__PURE__ */ a3("details", { class: "long", children: [
    /* @__PURE__ */ a3("summary", { children: [
      /* @__PURE__ */ a3("pre", { class: "said", children: /* @__PURE__ */ a3(Text, { of: of.slice(0, fold) }) }),
      /* @__PURE__ */ a3("span", { class: "more", children: [
        count(of.length - fold),
        " more characters"
      ] })
    ] }),
    /* @__PURE__ */ a3("pre", { class: "said", children: /* @__PURE__ */ a3(Text, { of: of.slice(fold) }) })
  ] });
}
var telling = ["command", "cmd", "pattern", "query", "url", "file_path", "path", "prompt"];
function gist(given) {
  const all = typeof given === "object" && given !== null ? given : {};
  const name = telling.find((name2) => typeof all[name2] === "string" && all[name2]);
  if (!name) return asText(given);
  return name.endsWith("path") ? shortPath(all[name]) : all[name];
}
function Call({ call, of }) {
  const r3 = call.result;
  const failed = hasFailed(call);
  const result = asText(r3?.error ?? r3?.result);
  return /* @__PURE__ */ a3("details", { class: `call ${failed ? "failed" : ""}`, children: [
    /* @__PURE__ */ a3("summary", { children: [
      /* @__PURE__ */ a3("span", { class: "sign", "aria-hidden": "true", children: !r3 ? "…" : failed ? "✗" : r3.success ? "✓" : "·" }),
      /* @__PURE__ */ a3("b", { children: /* @__PURE__ */ a3(Text, { of: call.tool_name }) }),
      /* @__PURE__ */ a3("span", { class: "args", children: /* @__PURE__ */ a3(Text, { of: firstLine(gist(call.arguments), 240) }) }),
      /* @__PURE__ */ a3("span", { class: "dim", children: [
        !r3 ? "no result" : r3.not_run ?? (failed ? "failed" : `${count(result.length)} characters`),
        r3?.duration_ms !== void 0 && `, ${count(Math.round(r3.duration_ms))} ms`
      ] }),
      (failed || r3?.not_run) && /* @__PURE__ */ a3("span", { class: "error", children: /* @__PURE__ */ a3(Text, { of: firstLine(result) }) })
    ] }),
    /* @__PURE__ */ a3("header", { children: [
      of && /* @__PURE__ */ a3(TurnLink, { of, turn: call.turn, event: call.seq }),
      /* @__PURE__ */ a3("span", { class: "dim", children: "call" }),
      /* @__PURE__ */ a3(EventLink, { seq: call.seq }),
      r3 && /* @__PURE__ */ a3($, { children: [
        /* @__PURE__ */ a3("span", { class: "dim", children: "result" }),
        /* @__PURE__ */ a3(EventLink, { seq: r3.seq })
      ] })
    ] }),
    /* @__PURE__ */ a3("pre", { children: /* @__PURE__ */ a3(Text, { of: asText(call.arguments), max: 2e4 }) }),
    r3 && /* @__PURE__ */ a3("pre", { class: "result", children: /* @__PURE__ */ a3(Text, { of: result, max: 2e4 }) })
  ] });
}

// src/health.tsx
var said = {
  loop: (n2) => `The same call had the same result ${n2} times, with nothing new between.`,
  failing: (n2) => `The same call failed ${n2} times, with nothing new between.`,
  rereads: (n2) => `The same part of a file was read again ${plural(n2, "time")}, with no write between.`,
  long_turn: (n2) => `A turn has ${count(n2)} steps.`,
  unanswered: (n2) => `The conversation ends with ${n2 === 1 ? "a request" : `${n2} requests`} without an answer.`
};
function Health({ c: c3, p: p3 }) {
  const { data, error } = useGet(path("/v1/conversations/{}/health", [c3.id], { from: p3["from"] }));
  const failed = usePages(path("/v1/conversations/{}/tool-calls", [c3.id], { success: "false", limit: 50 }), "tool_calls");
  return /* @__PURE__ */ a3("div", { class: "pad health", children: [
    /* @__PURE__ */ a3("section", { "aria-label": "Findings", children: [
      /* @__PURE__ */ a3("h2", { children: "Findings" }),
      /* @__PURE__ */ a3(Notice, { error, children: [
        !data ? "Loading…" : data.found === 0 ? `Nothing odd in ${plural(data.rows, "message, call or result", "messages, calls and results")}.` : `${plural(data.found, "finding")} in ${plural(data.rows, "message, call or result", "messages, calls and results")}, oldest first.`,
        " ",
        /* @__PURE__ */ a3("a", { href: "/help/health", children: "How they are found" })
      ] }),
      data && data.findings.length > 0 && /* @__PURE__ */ a3("ul", { class: "cards", children: data.findings.map((f4) => /* @__PURE__ */ a3("li", { children: [
        /* @__PURE__ */ a3("b", { children: said[f4.rule]?.(f4.count) ?? `${f4.rule}: ${count(f4.count)}` }),
        /* @__PURE__ */ a3("p", { class: "path", children: [
          f4.tool && /* @__PURE__ */ a3($, { children: [
            /* @__PURE__ */ a3(Text, { of: f4.tool }),
            " "
          ] }),
          /* @__PURE__ */ a3(Text, { of: f4.subject })
        ] }),
        /* @__PURE__ */ a3("p", { class: "facts", children: [
          /* @__PURE__ */ a3(TurnLink, { of: c3.id, turn: f4.turn, event: f4.seqs[0] }),
          /* @__PURE__ */ a3("span", { children: [
            f4.seqs.map((seq) => /* @__PURE__ */ a3(EventLink, { seq }, seq)),
            f4.seqs.length === 20 && "…"
          ] })
        ] })
      ] }, `${f4.rule} ${f4.seqs[0]}`)) }),
      data && data.found > data.findings.length && /* @__PURE__ */ a3(Notice, { children: [
        "The first ",
        count(data.findings.length),
        " are listed."
      ] }),
      data && !data.complete && /* @__PURE__ */ a3("button", { onClick: () => change({ from: String(data.next_from) }), children: [
        "Examine what comes after event ",
        data.next_from
      ] })
    ] }),
    /* @__PURE__ */ a3("section", { "aria-label": "Failed calls", children: [
      /* @__PURE__ */ a3("h2", { children: "Failed calls" }),
      /* @__PURE__ */ a3(Notice, { error: failed.error, children: failed.loading && failed.list.length === 0 ? "Loading…" : failed.list.length === 0 ? "None." : `${plural(failed.list.length, "call")}${failed.more ? " so far" : ""} that failed or that the user refused, newest first.` }),
      failed.list.map((call) => /* @__PURE__ */ a3(Call, { call, of: c3.id }, call.seq)),
      failed.more && /* @__PURE__ */ a3("button", { onClick: failed.more, children: "Show more" })
    ] })
  ] });
}

// src/outline.ts
var page = 1e3;
var eager = 1e5;
var beginnings = 40;
var kept = 1e3;
var searched = 5;
var Outline = class {
  // number of the last turn
  constructor(of, changed2) {
    this.of = of;
    this.changed = changed2;
    this.last = of.turn_count + (of.inherited?.turn_count ?? 0);
    const n2 = this.last + 1;
    this.known = n2;
    this.starts = new Float64Array(n2);
    this.ends = new Float64Array(n2);
    this.times = new Float64Array(n2);
    this.sizes = new Uint32Array(n2);
    this.uses = new Uint32Array(n2);
    void this.read();
  }
  of;
  changed;
  first = 1;
  // number of the first turn; 0 if something comes before the first message of a user
  known;
  // the lowest turn that is known
  summaries = [];
  errors = {};
  starts;
  ends;
  times;
  sizes;
  uses;
  texts = /* @__PURE__ */ new Map();
  wanted = { first: 0, last: 0 };
  next;
  begun = false;
  reading = false;
  asking = false;
  control = new AbortController();
  last;
  stop() {
    this.control.abort();
  }
  get error() {
    return this.errors.read ?? this.errors.ask;
  }
  get turns() {
    return this.last - this.first + 1;
  }
  has(turn) {
    return turn >= this.known && turn <= this.last;
  }
  begin(turn) {
    return this.starts[turn] ?? 0;
  }
  end(turn) {
    return this.ends[turn] ?? 0;
  }
  chars(turn) {
    return this.sizes[turn] ?? 0;
  }
  calls(turn) {
    return this.uses[turn] ?? 0;
  }
  time(turn) {
    return this.times[turn] ? new Date(this.times[turn] * 1e3).toISOString() : void 0;
  }
  text(turn) {
    return this.texts.get(turn);
  }
  // turnAt returns the turn that a sequence is in, or the lowest that is known.
  turnAt(seq) {
    let low = this.known, high = this.last;
    while (low < high) {
      const middle = low + high + 1 >> 1;
      if (this.begin(middle) <= seq) low = middle;
      else high = middle - 1;
    }
    return Math.min(low, this.last);
  }
  // want asks for the texts of turns, which are in sight.
  want(first, last) {
    this.wanted = { first: Math.max(this.first, first), last: Math.min(this.last, last) };
    void this.read();
    void this.ask();
  }
  // guarded does f patiently. An error is shown until there is an answer.
  async guarded(what, f4) {
    const recovered = () => {
      delete this.errors[what];
      this.changed();
    };
    const done = await patient((answered) => f4(() => {
      answered();
      recovered();
    }), this.control.signal, (e3) => {
      this.errors[what] = e3;
      this.changed();
    });
    if (done && this.errors[what]) recovered();
  }
  read = async () => {
    if (this.reading) return;
    this.reading = true;
    await this.guarded("read", async (answered) => {
      while (!this.begun || this.next && (this.last - this.known < eager || this.known > this.wanted.first)) {
        const url = path("/v1/conversations/{}/outline", [this.of.id], { as_of: this.of.last_seq, limit: page, cursor: this.next });
        const answer = await getJSON(url, this.control.signal);
        if (!this.begun) this.summaries = answer.summaries ?? [];
        this.begun = true;
        this.next = answer.next_cursor;
        for (const t3 of answer.turns) {
          if (t3.n === 0) this.first = 0;
          this.known = Math.min(this.known, t3.n);
          this.starts[t3.n] = t3.seq;
          this.ends[t3.n] = t3.end;
          this.times[t3.n] = t3.at ?? 0;
          this.sizes[t3.n] = t3.chars;
          this.uses[t3.n] = t3.calls ?? 0;
        }
        answered();
        void this.ask();
      }
    });
    this.reading = false;
    if (this.next && this.known > this.wanted.first && this.goesOn("read")) void this.read();
  };
  // goesOn reports whether what came into sight while a request ended can be asked for.
  goesOn(what) {
    return !this.errors[what] && !this.control.signal.aborted;
  }
  missing() {
    for (let n2 = this.wanted.last; n2 >= Math.max(this.wanted.first, this.known); n2--) if (!this.texts.has(n2)) return n2;
    return -1;
  }
  ask = async () => {
    if (this.asking) return;
    this.asking = true;
    await this.guarded("ask", async (answered) => {
      for (let last = this.missing(); last >= 0; last = this.missing()) {
        const limit = Math.min(beginnings, last - Math.max(this.wanted.first, this.known) + 1);
        const url = await asOf(this.of, this.end(last), "/v1/conversations/{}/turns", { limit });
        const { turns } = await getJSON(url, this.control.signal);
        for (const t3 of turns) this.texts.set(t3.number, { text: firstLine(typed(t3.user_message?.content ?? ""), 160), origin: t3.user_message?.origin });
        if (!this.texts.has(last)) this.texts.set(last, { text: "" });
        this.forget();
        answered();
        await this.askFailed(last - limit + 1, last);
        answered();
      }
    });
    this.asking = false;
    if (this.missing() >= 0 && this.goesOn("ask")) void this.ask();
  };
  // askFailed counts the failed calls of turns, from the last one back.
  async askFailed(first, last) {
    if (!this.uses.subarray(first, last + 1).some((calls2) => calls2 > 0)) return;
    let cursor, within = true;
    for (let i3 = 0; i3 < searched && within; i3++) {
      const url = await asOf(this.of, this.end(last), "/v1/conversations/{}/tool-calls", { success: "false", limit: 100, cursor });
      const answer = await getJSON(url, this.control.signal);
      for (const call of answer.tool_calls) {
        const turn = this.texts.get(call.turn);
        if (turn && call.turn >= first && hasFailed(call)) turn.failed = (turn.failed ?? 0) + 1;
      }
      cursor = answer.next_cursor;
      within = cursor !== void 0 && !answer.tool_calls.some((call) => call.turn < first);
    }
  }
  forget() {
    if (this.texts.size <= kept) return;
    const middle = (this.wanted.first + this.wanted.last) / 2;
    const far = [...this.texts.keys()].sort((a4, b) => Math.abs(b - middle) - Math.abs(a4 - middle));
    for (const turn of far.slice(0, this.texts.size - kept)) this.texts.delete(turn);
  }
};
function useOutline(of) {
  const [, redraw2] = d2(0);
  const held = T2(void 0);
  if (of && held.current?.of !== of) {
    held.current?.outline.stop();
    held.current = { of, outline: new Outline(of, () => redraw2((n2) => n2 + 1)) };
  }
  A2(() => () => held.current?.outline.stop(), []);
  return held.current?.outline;
}

// src/conversation.tsx
var views = [
  ["timeline", "Timeline"],
  ["context", "Context"],
  ["served", "Served"],
  ["compare", "Compare"],
  ["search", "Search"],
  ["graph", "Graph"],
  ["files", "Files"],
  ["health", "Health"]
];
function ConversationView({ id, p: p3 }) {
  const read = useGet(path("/v1/conversations/{}", [id])), { data: newest, error } = read;
  useWatch(read, 5e3);
  const [shown3, show] = d2();
  if (!shown3 && newest) show(newest);
  const c3 = shown3 ?? newest;
  const outline = useOutline(c3), only = useAccess()?.project;
  const view = views.some(([v3]) => v3 === p3["view"]) ? p3["view"] : "timeline";
  useTitle(views.find(([v3]) => v3 === view)[1], c3?.title || id);
  const tabs = T2(null);
  A2(() => tabs.current?.querySelector("[aria-current]")?.scrollIntoView({ block: "nearest", inline: "nearest" }), [view, c3, outline]);
  if (!c3 || !outline) return /* @__PURE__ */ a3("div", { class: "page", children: [
    error && /* @__PURE__ */ a3("h1", { children: /* @__PURE__ */ a3(Text, { of: id }) }),
    /* @__PURE__ */ a3(Notice, { error, children: "Loading…" })
  ] });
  const all = withInherited(c3);
  return /* @__PURE__ */ a3("div", { class: `conversation ${p3["event"] ? "with-event" : ""}`, children: [
    /* @__PURE__ */ a3("div", { class: "head", children: [
      /* @__PURE__ */ a3("h1", { children: /* @__PURE__ */ a3(Text, { of: c3.title || c3.id }) }),
      /* @__PURE__ */ a3("p", { class: "facts", children: [
        c3.agent && /* @__PURE__ */ a3("span", { children: /* @__PURE__ */ a3(Text, { of: c3.agent }) }),
        /* @__PURE__ */ a3("span", { children: plural(all.turn_count, "turn") }),
        /* @__PURE__ */ a3("span", { children: plural(all.message_count, "message") }),
        /* @__PURE__ */ a3("span", { children: plural(all.tool_call_count, "call") }),
        /* @__PURE__ */ a3("span", { children: [
          count(all.total_chars),
          " characters"
        ] }),
        c3.inherited && /* @__PURE__ */ a3("a", { href: link({ c: c3.inherited.conversation_id, turn: String(c3.inherited.turn_count) }), children: [
          "branch, the first ",
          plural(c3.inherited.turn_count, "turn"),
          " inherited"
        ] }),
        !only && /* @__PURE__ */ a3($, { children: [
          /* @__PURE__ */ a3("a", { href: link({ view: "tail", conversation: id }), children: "Live" }),
          /* @__PURE__ */ a3("a", { href: link({ view: "insights", conversation: id, by: "tool" }), children: "Insights" })
        ] }),
        /* @__PURE__ */ a3("code", { class: "id", children: /* @__PURE__ */ a3(Text, { of: c3.id }) }),
        newest && newest.last_seq > c3.last_seq && /* @__PURE__ */ a3("button", { class: "quiet", onClick: () => show(newest), children: added(c3, newest) })
      ] }),
      error && /* @__PURE__ */ a3(Notice, { error }),
      /* @__PURE__ */ a3("nav", { class: "tabs", ref: tabs, "aria-label": "Views of this conversation", children: views.map(([v3, name]) => /* @__PURE__ */ a3("a", { href: link({ c: id, view: v3 === "timeline" ? void 0 : v3 }), "aria-current": v3 === view ? "page" : void 0, children: name }, v3)) })
    ] }),
    /* @__PURE__ */ a3("div", { class: "body", children: [
      /* @__PURE__ */ a3("div", { class: "view", children: [
        view === "timeline" && /* @__PURE__ */ a3(Timeline, { c: c3, outline, p: p3 }),
        view === "context" && /* @__PURE__ */ a3(ContextView, { c: c3, outline, p: p3 }),
        view === "served" && /* @__PURE__ */ a3(ServedContexts, { c: c3 }),
        view === "compare" && /* @__PURE__ */ a3(Compare, { c: c3, p: p3 }),
        view === "search" && /* @__PURE__ */ a3(Bench, { c: c3, p: p3 }),
        view === "graph" && /* @__PURE__ */ a3(Graph, { c: c3, outline, p: p3 }),
        view === "files" && /* @__PURE__ */ a3(Files, { c: c3 }),
        view === "health" && /* @__PURE__ */ a3(Health, { c: c3, p: p3 })
      ] }, c3.last_seq),
      p3["event"] && /* @__PURE__ */ a3(EventPanel, { seq: p3["event"], of: id })
    ] })
  ] });
}
function added(before2, now) {
  const messages = now.message_count - before2.message_count, calls2 = now.tool_call_count - before2.tool_call_count;
  return `Show ${messages > 0 ? plural(messages, "new message") : calls2 > 0 ? plural(calls2, "new call") : "what is new"}`;
}

// src/conversations.tsx
function midnight(day, later = 0) {
  const at = /* @__PURE__ */ new Date(`${day}T00:00:00`);
  if (!day || isNaN(at.getTime())) return day;
  at.setDate(at.getDate() + later);
  return at.toISOString();
}
function Conversations({ p: p3 }) {
  const query = p3["q"] ?? "";
  useTitle(query, "Conversations");
  const access = useAccess(), only = access?.project;
  const projects = useGet(access && !only ? path("/v1/projects", [], { limit: 200 }) : null);
  const list = usePages(query ? null : path("/v1/conversations", [], {
    limit: 50,
    project: p3["project"],
    agent: p3["agent"],
    status: p3["status"],
    order: p3["order"],
    updated_after: midnight(p3["since"])
  }), "conversations");
  const kind = p3["project"] || only ? p3["kind"] : void 0;
  const found = useGet(query ? path("/v1/search", [], {
    query,
    project: p3["project"],
    kind,
    role: kind === "tool" ? void 0 : p3["role"],
    since: midnight(p3["since"]),
    until: midnight(p3["until"], 1),
    limit: 30,
    max_chars: 300
  }) : null, 200);
  const filtered = p3["project"] || p3["agent"] || p3["status"] || p3["since"];
  const agents = [.../* @__PURE__ */ new Set([...list.list.map((c3) => c3.agent ?? ""), p3["agent"] ?? ""])].filter(Boolean).sort();
  return /* @__PURE__ */ a3("div", { class: "page", children: [
    /* @__PURE__ */ a3("h1", { children: "Conversations" }),
    /* @__PURE__ */ a3("form", { class: "filters", role: "search", onSubmit: (e3) => e3.preventDefault(), children: [
      /* @__PURE__ */ a3(
        "input",
        {
          type: "search",
          placeholder: "Search by words and meaning",
          "aria-label": "Search all conversations",
          value: query,
          onInput: (e3) => change({ q: e3.currentTarget.value }, true)
        }
      ),
      !only && /* @__PURE__ */ a3("label", { children: [
        "Project ",
        /* @__PURE__ */ a3("select", { value: p3["project"] ?? "", onChange: (e3) => change({ project: e3.currentTarget.value }), children: [
          /* @__PURE__ */ a3("option", { value: "", children: "all" }),
          /* @__PURE__ */ a3(ProjectOptions, { of: projects.data?.projects.map((x2) => x2.name) ?? [], chosen: p3["project"] })
        ] })
      ] }),
      query ? /* @__PURE__ */ a3($, { children: [
        (p3["project"] || only) && /* @__PURE__ */ a3("label", { children: [
          "In ",
          /* @__PURE__ */ a3("select", { value: kind ?? "", onChange: (e3) => change({ kind: e3.currentTarget.value }, true), children: [
            /* @__PURE__ */ a3("option", { value: "", children: "messages" }),
            /* @__PURE__ */ a3("option", { value: "tool", children: "tool results" }),
            /* @__PURE__ */ a3("option", { value: "all", children: "both" })
          ] })
        ] }),
        kind !== "tool" && /* @__PURE__ */ a3("label", { children: [
          "Role ",
          /* @__PURE__ */ a3("select", { value: p3["role"] ?? "", onChange: (e3) => change({ role: e3.currentTarget.value }, true), children: [
            /* @__PURE__ */ a3("option", { value: "", children: "all" }),
            /* @__PURE__ */ a3("option", { children: "user" }),
            /* @__PURE__ */ a3("option", { children: "assistant" })
          ] })
        ] }),
        /* @__PURE__ */ a3("label", { children: [
          "Since ",
          /* @__PURE__ */ a3("input", { type: "date", value: p3["since"] ?? "", onChange: (e3) => change({ since: e3.currentTarget.value }, true) })
        ] }),
        /* @__PURE__ */ a3("label", { children: [
          "Until ",
          /* @__PURE__ */ a3("input", { type: "date", value: p3["until"] ?? "", onChange: (e3) => change({ until: e3.currentTarget.value }, true) })
        ] })
      ] }) : /* @__PURE__ */ a3($, { children: [
        /* @__PURE__ */ a3("label", { children: [
          "Agent ",
          /* @__PURE__ */ a3("select", { value: p3["agent"] ?? "", onChange: (e3) => change({ agent: e3.currentTarget.value }), children: [
            /* @__PURE__ */ a3("option", { value: "", children: "all" }),
            agents.map((a4) => /* @__PURE__ */ a3("option", { value: a4, children: plain(a4) }, a4))
          ] })
        ] }),
        /* @__PURE__ */ a3("label", { children: [
          "Status ",
          /* @__PURE__ */ a3("select", { value: p3["status"] ?? "", onChange: (e3) => change({ status: e3.currentTarget.value }), children: [
            /* @__PURE__ */ a3("option", { value: "", children: "all" }),
            /* @__PURE__ */ a3("option", { children: "active" }),
            /* @__PURE__ */ a3("option", { children: "archived" })
          ] })
        ] }),
        /* @__PURE__ */ a3("label", { children: [
          "Since ",
          /* @__PURE__ */ a3("input", { type: "date", value: p3["since"] ?? "", onChange: (e3) => change({ since: e3.currentTarget.value }) })
        ] })
      ] })
    ] }),
    /* @__PURE__ */ a3(Notice, { error: found.error ?? list.error, children: query ? found.loading ? "Searching…" : summary(found.data, kind) : list.loading && list.list.length === 0 ? "Loading…" : list.list.length === 0 ? filtered ? "No conversation matches these filters." : /* @__PURE__ */ a3(Empty, {}) : `${plural(list.list.length, "conversation")}${list.more ? " so far" : ""}, most recently recorded first` }),
    /* @__PURE__ */ a3("ul", { class: "cards", children: (query ? found.data?.conversations ?? [] : list.list).map((c3) => /* @__PURE__ */ a3(Card, { c: c3 }, c3.id)) }),
    (query && found.data?.tool_results || []).map((r3) => /* @__PURE__ */ a3(ToolResult, { r: r3, of: r3.conversation_id, title: r3.title || r3.conversation_id }, r3.seq)),
    !query && list.more && /* @__PURE__ */ a3("button", { onClick: list.more, children: "Show more" })
  ] });
}
function Empty() {
  return /* @__PURE__ */ a3($, { children: [
    "No conversations yet. ",
    /* @__PURE__ */ a3("a", { href: "/help/agents", children: "Connect a coding agent" }),
    ", ",
    /* @__PURE__ */ a3("a", { href: "/help/start/record", children: "record an agent of your own" }),
    ", or ",
    /* @__PURE__ */ a3("a", { href: "/help/publish#import-recorded-sessions", children: "import sessions" }),
    " with ",
    /* @__PURE__ */ a3("code", { children: "mneme import" }),
    "."
  ] });
}
function summary(found, kind) {
  const parts = kind === "tool" ? [] : [plural(found?.conversations.length ?? 0, "conversation")];
  if (kind) parts.push(plural(found?.tool_results?.length ?? 0, "tool result"));
  const left = found?.conversations_left_out;
  if (!found?.conversations.length && !found?.tool_results?.length && !left) return "Nothing found.";
  return `${parts.join(" and ")} found, best first${left ? `; tool results of ${plural(left, "older conversation")} were not searched` : ""}`;
}
function Card({ c: c3 }) {
  const all = withInherited(c3);
  return /* @__PURE__ */ a3("li", { children: [
    /* @__PURE__ */ a3("a", { class: "title", href: link({ c: c3.id }), children: /* @__PURE__ */ a3(Text, { of: c3.title || c3.id }) }),
    /* @__PURE__ */ a3("p", { class: "facts", children: [
      c3.agent && /* @__PURE__ */ a3("span", { children: /* @__PURE__ */ a3(Text, { of: c3.agent }) }),
      c3.cwd && /* @__PURE__ */ a3("span", { title: c3.cwd, children: /* @__PURE__ */ a3(Text, { of: shortPath(c3.cwd) }) }),
      /* @__PURE__ */ a3("span", { children: [
        plural(all.turn_count, "turn"),
        c3.branched_from && !c3.inherited && " of its own"
      ] }),
      /* @__PURE__ */ a3("span", { children: plural(all.tool_call_count, "call") }),
      /* @__PURE__ */ a3("span", { children: [
        count(all.total_chars),
        " characters"
      ] }),
      (c3.branched_from || c3.inherited) && /* @__PURE__ */ a3("span", { class: "badge", children: "branch" }),
      c3.status !== "active" && /* @__PURE__ */ a3("span", { class: "badge", children: c3.status }),
      c3.tags.map((t3) => /* @__PURE__ */ a3("span", { class: "badge", children: /* @__PURE__ */ a3(Text, { of: t3 }) }, t3)),
      /* @__PURE__ */ a3(Time, { of: c3.updated_at })
    ] }),
    c3.messages?.slice(0, 2).map((m3) => /* @__PURE__ */ a3("a", { class: "quote", href: link({ c: c3.id, turn: String(m3.turn), event: String(m3.seq) }), children: [
      /* @__PURE__ */ a3("span", { class: "dim", children: [
        m3.role,
        ", turn ",
        m3.turn
      ] }),
      " ",
      /* @__PURE__ */ a3(Lit, { of: m3.text ?? "", highlights: m3.highlights })
    ] }, m3.seq))
  ] });
}

// src/insights.tsx
var groupings = ["day", "project", "conversation", "agent", "model", "tool", "command", "error", "file"];
var sorts = [["tokens", "most tokens"], ["errors", "most failed calls"], ["rereads", "most repeated reads"], ["duration", "longest calls"]];
var most = 1e3;
var large = (n2) => n2 === void 0 ? void 0 : n2 < 1e4 ? count(n2) : n2 < 1e7 ? `${count(Math.round(n2 / 1e3))}k` : `${(n2 / 1e6).toLocaleString("en-US", { minimumFractionDigits: 1, maximumFractionDigits: 1 })}M`;
var duration = (ms) => ms === void 0 ? void 0 : ms < 1e3 ? `${ms} ms` : ms < 6e4 ? `${(ms / 1e3).toFixed(1)} s` : ms < 36e5 ? `${(ms / 6e4).toFixed(1)} min` : `${(ms / 36e5).toFixed(1)} h`;
var cost = (g3) => g3.cost?.amount?.toFixed(2);
var conversations = ["Conversations", (g3) => g3.conversations];
var calls = [
  ["Calls", (g3) => g3.calls?.count],
  ["Failed", (g3) => g3.calls?.failed],
  ["Refused", (g3) => g3.calls?.refused],
  ["Success", (g3) => g3.calls?.success_rate === void 0 ? void 0 : `${(100 * g3.calls.success_rate).toFixed(1)} %`],
  ["Median", (g3) => duration(g3.calls?.p50_ms)],
  ["99 %", (g3) => duration(g3.calls?.p99_ms)],
  ["Time", (g3) => duration(g3.calls?.total_ms)],
  conversations
];
var work = [
  conversations,
  ["Turns", (g3) => g3.work?.turns],
  ["Steps", (g3) => g3.work?.steps],
  ["Tokens in", (g3) => large(g3.tokens?.in)],
  ["of these cached", (g3) => large(g3.tokens?.cached)],
  ["Tokens out", (g3) => large(g3.tokens?.out)],
  ["Cost", cost],
  ["Calls", (g3) => g3.calls?.count],
  ["Failed", (g3) => g3.calls?.failed],
  ["Rereads", (g3) => g3.files?.rereads],
  ["Time of calls", (g3) => duration(g3.calls?.total_ms)]
];
var special = {
  tool: calls,
  command: calls,
  error: [["Tool", (g3) => g3.tool], ["Times", (g3) => g3.errors], conversations],
  file: [["Reads", (g3) => g3.files?.reads], ["Rereads", (g3) => g3.files?.rereads], ["Writes", (g3) => g3.files?.writes], conversations],
  conversation: work.slice(1)
};
function Insights({ p: p3 }) {
  const by = groupings.includes(p3["by"] ?? "") ? p3["by"] : "day";
  useTitle(`By ${by}`, "Insights");
  const limit = Math.min(most, Number(p3["limit"]) || 50);
  const projects = useGet(path("/v1/projects", [], { limit: 200 })).data?.projects.map((x2) => x2.name) ?? [];
  const { data, error, loading } = useGet(path("/v1/insights", [], { by, project: p3["project"], conversation: p3["conversation"], since: p3["since"], until: p3["until"], sort: p3["sort"], limit }));
  const of = data?.by ?? by;
  const groups = of === "day" && !p3["sort"] ? data?.groups.slice().reverse() : data?.groups;
  const columns3 = (special[of] ?? work).filter(([heading]) => heading !== "Cost" || data?.total.cost);
  return /* @__PURE__ */ a3("div", { class: "page", children: [
    /* @__PURE__ */ a3("h1", { children: "Insights" }),
    /* @__PURE__ */ a3("form", { class: "filters", onSubmit: (e3) => e3.preventDefault(), children: [
      /* @__PURE__ */ a3("label", { children: [
        "By ",
        /* @__PURE__ */ a3("select", { value: by, onChange: (e3) => change({ by: e3.currentTarget.value, sort: void 0, limit: void 0 }), children: groupings.map((x2) => /* @__PURE__ */ a3("option", { children: x2 }, x2)) })
      ] }),
      /* @__PURE__ */ a3("label", { children: [
        "Project ",
        /* @__PURE__ */ a3("select", { value: p3["project"] ?? "", onChange: (e3) => change({ project: e3.currentTarget.value }), children: [
          /* @__PURE__ */ a3("option", { value: "", children: "all" }),
          /* @__PURE__ */ a3(ProjectOptions, { of: projects, chosen: p3["project"] })
        ] })
      ] }),
      /* @__PURE__ */ a3("label", { children: [
        "Since ",
        /* @__PURE__ */ a3("input", { type: "date", value: p3["since"] ?? "", onChange: (e3) => change({ since: e3.currentTarget.value }) })
      ] }),
      /* @__PURE__ */ a3("label", { children: [
        "Until ",
        /* @__PURE__ */ a3("input", { type: "date", value: p3["until"] ?? "", onChange: (e3) => change({ until: e3.currentTarget.value }) })
      ] }),
      /* @__PURE__ */ a3("label", { children: [
        "First ",
        /* @__PURE__ */ a3("select", { value: p3["sort"] ?? "", onChange: (e3) => change({ sort: e3.currentTarget.value }), children: [
          /* @__PURE__ */ a3("option", { value: "", children: by === "day" ? "newest" : "largest" }),
          sorts.map(([s3, name]) => /* @__PURE__ */ a3("option", { value: s3, children: name }, s3))
        ] })
      ] })
    ] }),
    p3["conversation"] && /* @__PURE__ */ a3("p", { class: "facts", children: [
      "Only the conversation ",
      /* @__PURE__ */ a3("a", { href: link({ c: data?.conversation ?? p3["conversation"] }), children: /* @__PURE__ */ a3(Text, { of: data?.conversation ?? p3["conversation"] }) }),
      /* @__PURE__ */ a3("button", { class: "quiet", onClick: () => change({ conversation: void 0 }), "aria-label": "All conversations", children: "✕" })
    ] }),
    (error || !data) && /* @__PURE__ */ a3(Notice, { error, children: "Loading…" }),
    data && /* @__PURE__ */ a3("div", { "aria-busy": loading, children: [
      /* @__PURE__ */ a3("p", { class: "figures", children: [
        /* @__PURE__ */ a3(Figure, { name: "conversations", of: count(data.total.conversations) }),
        /* @__PURE__ */ a3(Figure, { name: "turns", of: large(data.total.work?.turns) }),
        /* @__PURE__ */ a3(Figure, { name: "tokens read", of: large(data.total.tokens?.in) }),
        /* @__PURE__ */ a3(Figure, { name: "tokens written", of: large(data.total.tokens?.out) }),
        /* @__PURE__ */ a3(Figure, { name: `cost in ${data.total.cost?.currency}`, of: cost(data.total) }),
        /* @__PURE__ */ a3(Figure, { name: "calls", of: large(data.total.calls?.count) }),
        /* @__PURE__ */ a3(Figure, { name: "failed calls", of: large(data.total.calls?.failed) })
      ] }),
      /* @__PURE__ */ a3(Remarks, { of: data }),
      groups.length > 0 && /* @__PURE__ */ a3("div", { class: "scroll-x", tabIndex: 0, role: "region", "aria-label": `Figures by ${of}`, children: /* @__PURE__ */ a3("table", { children: [
        /* @__PURE__ */ a3("thead", { children: /* @__PURE__ */ a3("tr", { children: [
          /* @__PURE__ */ a3("th", { children: of.charAt(0).toUpperCase() + of.slice(1) }),
          columns3.map(([heading]) => /* @__PURE__ */ a3("th", { class: heading === "Tool" ? "" : "n", children: heading }, heading))
        ] }) }),
        /* @__PURE__ */ a3("tbody", { children: groups.map((g3) => /* @__PURE__ */ a3("tr", { children: [
          /* @__PURE__ */ a3("td", { class: of === "file" || of === "command" ? "path" : "query", children: /* @__PURE__ */ a3(Name, { by: of, g: g3 }) }),
          columns3.map(([heading, value]) => /* @__PURE__ */ a3("td", { class: heading === "Tool" ? "word" : "n nowrap", children: shown2(value(g3)) }, heading))
        ] }, `${g3.tool} ${g3.name}`)) })
      ] }) }),
      data.left_out > 0 && (limit < most ? /* @__PURE__ */ a3("button", { onClick: () => change({ limit: String(most) }, true), children: "Show more" }) : /* @__PURE__ */ a3(Notice, { children: [
        count(data.left_out),
        " more are not shown."
      ] }))
    ] })
  ] });
}
var shown2 = (v3) => typeof v3 === "number" ? count(v3) : v3 === void 0 ? "" : /* @__PURE__ */ a3(Text, { of: v3 });
function Figure({ name, of }) {
  return of === void 0 ? null : /* @__PURE__ */ a3("span", { children: [
    /* @__PURE__ */ a3("b", { children: of }),
    " ",
    name
  ] });
}
function Name({ by, g: g3 }) {
  if (!g3.name) return /* @__PURE__ */ a3($, { children: "(unknown)" });
  if (by === "conversation") return /* @__PURE__ */ a3("a", { href: link({ c: g3.name, view: "health" }), children: /* @__PURE__ */ a3(Text, { of: g3.title || g3.name }) });
  if (by === "project") return /* @__PURE__ */ a3("a", { href: link({ view: "project", project: g3.name }), title: g3.name, children: /* @__PURE__ */ a3(Text, { of: shortPath(g3.name) }) });
  return /* @__PURE__ */ a3(Text, { of: g3.name });
}
function Remarks({ of: { total, groups } }) {
  if (groups.length === 0) return /* @__PURE__ */ a3(Notice, { children: "No conversations to count." });
  const unknown = total.cost?.unknown?.map((name) => name || "(unknown)") ?? [];
  return /* @__PURE__ */ a3(Notice, { children: [
    "Days are UTC days of the events' own times.",
    total.tokens && total.tokens.unknown_steps > 0 && ` ${count(total.tokens.unknown_steps)} of ${plural(total.work?.steps ?? 0, "step")} have no known tokens.`,
    total.tokens && !total.cost && /* @__PURE__ */ a3($, { children: [
      " Costs are unknown: the server has no ",
      /* @__PURE__ */ a3("a", { href: "/help/insights#tokens-cost-and-how-long-until-something-changes", children: "price file" }),
      "."
    ] }),
    unknown.length > 0 && /* @__PURE__ */ a3($, { children: [
      " Costs are without those of ",
      /* @__PURE__ */ a3(Text, { of: unknown.join(", ") }),
      ", whose price is unknown."
    ] })
  ] });
}

// src/doctor.tsx
var signs2 = { failed: "bad", warning: "busy", ok: "good" };
function Doctor({ asked: asked2 }) {
  const [round, next] = d2(0);
  return /* @__PURE__ */ a3("section", { "aria-label": "Doctor", children: [
    /* @__PURE__ */ a3("div", { class: "bar", children: [
      /* @__PURE__ */ a3("h2", { children: "Doctor" }),
      /* @__PURE__ */ a3("span", { class: "space" }),
      asked2 ? /* @__PURE__ */ a3("button", { onClick: () => next(round + 1), children: "Check again" }) : /* @__PURE__ */ a3("button", { onClick: () => change({ doctor: "1" }), children: "Check this server" })
    ] }),
    asked2 ? /* @__PURE__ */ a3(Findings, {}, round) : /* @__PURE__ */ a3(Notice, { children: "Checks settings, limits, certificates, NATS, the log, read models and disk, and says what to do about each problem. It changes nothing." })
  ] });
}
function Findings() {
  const { data, error } = useGet("/v1/doctor");
  if (!data) return /* @__PURE__ */ a3(Notice, { error, children: "Loading… This takes at most ten seconds." });
  const of = (level) => data.checks.filter((c3) => c3.level === level);
  const failed = of("failed"), warnings = of("warning"), passed = of("ok");
  const sum = [failed.length > 0 && plural(failed.length, "failure"), warnings.length > 0 && plural(warnings.length, "warning"), plural(passed.length, "passed check")];
  return /* @__PURE__ */ a3($, { children: [
    /* @__PURE__ */ a3("p", { class: "notice", role: "status", children: [
      sum.filter(Boolean).join(", "),
      "."
    ] }),
    /* @__PURE__ */ a3(List, { of: [...failed, ...warnings] }),
    /* @__PURE__ */ a3("details", { children: [
      /* @__PURE__ */ a3("summary", { children: plural(passed.length, "passed check") }),
      /* @__PURE__ */ a3(List, { of: passed })
    ] })
  ] });
}
function List({ of }) {
  return /* @__PURE__ */ a3("ul", { class: "cards findings", children: of.map((c3, n2) => /* @__PURE__ */ a3("li", { children: [
    /* @__PURE__ */ a3("span", { class: `state ${signs2[c3.level]}`, children: c3.level }),
    /* @__PURE__ */ a3("div", { children: [
      /* @__PURE__ */ a3("b", { children: c3.check }),
      ": ",
      /* @__PURE__ */ a3(Text, { of: c3.detail }),
      c3.remedy && /* @__PURE__ */ a3("p", { children: [
        /* @__PURE__ */ a3("span", { class: "dim", children: "What to do:" }),
        " ",
        /* @__PURE__ */ a3(Text, { of: c3.remedy })
      ] })
    ] })
  ] }, n2)) });
}

// src/stream.ts
var longest = 4 << 20;
async function* sent(answer) {
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  try {
    for (; ; ) {
      const { value, done } = await reader.read();
      if (done) return;
      rest += value;
      for (let end = rest.indexOf("\n\n"); end >= 0; end = rest.indexOf("\n\n")) {
        const message = parse(rest.slice(0, end));
        rest = rest.slice(end + 2);
        if (message.data) yield message;
      }
      if (rest.length > longest) throw new Error("The server sent a message that is too long.");
    }
  } finally {
    void reader.cancel().catch(() => {
    });
  }
}
function parse(text) {
  const message = { id: "", name: "message", data: "" };
  for (const line of text.split("\n")) {
    const colon = line.indexOf(":");
    const value = line.slice(colon + 1).replace(/^ /, "");
    if (line.startsWith("id:")) message.id = value;
    else if (line.startsWith("event:")) message.name = value;
    else if (line.startsWith("data:")) message.data += (message.data ? "\n" : "") + value;
  }
  return message;
}

// src/operations.tsx
function Operations({ p: p3 }) {
  useTitle("Operations");
  const access = useAccess();
  const mayRetry = lacks(access, "operate"), mayRebuild = lacks(access, "operate", true);
  const status = useGet("/v1/status");
  const failed = useGet(mayRetry === void 0 ? "/v1/failed?limit=200" : null);
  const [said2, setSaid] = d2();
  useWatch(status, 3e3);
  const act = async (at, question, doing, f4) => {
    if (!confirm(question)) return;
    const say = (text) => setSaid({ at, text });
    say(doing);
    try {
      say(await f4(say));
      failed.again();
      status.again();
    } catch (e3) {
      setSaid({ at, problem: e3 });
    }
  };
  const saidAt = (at) => said2?.at !== at ? null : said2.problem ? /* @__PURE__ */ a3(Notice, { error: said2.problem }) : /* @__PURE__ */ a3("p", { class: "notice", role: "status", children: said2.text });
  const s3 = status.data;
  return /* @__PURE__ */ a3("div", { class: "body", children: [
    /* @__PURE__ */ a3("div", { class: "view", children: /* @__PURE__ */ a3("div", { class: "page", children: [
      /* @__PURE__ */ a3("h1", { children: "Operations" }),
      (!s3 || status.error) && /* @__PURE__ */ a3(Notice, { error: status.error, children: "Loading…" }),
      s3 && /* @__PURE__ */ a3("p", { class: "figures", children: [
        /* @__PURE__ */ a3("span", { children: [
          /* @__PURE__ */ a3("b", { children: count(s3.stream.head) }),
          " head of the log"
        ] }),
        /* @__PURE__ */ a3("span", { children: [
          /* @__PURE__ */ a3("b", { children: count(s3.stream.messages) }),
          " events"
        ] }),
        /* @__PURE__ */ a3("span", { children: [
          /* @__PURE__ */ a3("b", { children: [
            (s3.stream.bytes / 1e6).toFixed(1),
            " MB"
          ] }),
          " on disk"
        ] }),
        /* @__PURE__ */ a3("span", { children: [
          /* @__PURE__ */ a3("b", { children: count(Math.max(0, ...s3.projections.map((x2) => x2.lag))) }),
          " lag"
        ] }),
        /* @__PURE__ */ a3("span", { children: [
          /* @__PURE__ */ a3("b", { children: count(s3.projections.filter((x2) => x2.partition === 0).reduce((n2, x2) => n2 + x2.failed, 0)) }),
          " failed"
        ] }),
        /* @__PURE__ */ a3("span", { children: [
          /* @__PURE__ */ a3("b", { children: s3.version.version }),
          " version"
        ] })
      ] }),
      s3?.stream.error && /* @__PURE__ */ a3("p", { class: "notice error", role: "alert", children: [
        "The log accepts no writes: ",
        /* @__PURE__ */ a3(Text, { of: s3.stream.error })
      ] }),
      mayRebuild === void 0 && /* @__PURE__ */ a3(Doctor, { asked: p3["doctor"] !== void 0 }),
      s3 && /* @__PURE__ */ a3("section", { "aria-label": "Read models", children: [
        /* @__PURE__ */ a3("div", { class: "bar", children: [
          /* @__PURE__ */ a3("h2", { children: "Read models" }),
          /* @__PURE__ */ a3("span", { class: "space" }),
          mayRebuild === void 0 && /* @__PURE__ */ a3("button", { onClick: () => void act("models", "Replay the whole log and compare the read models with it?", "Replaying the log…", verify), children: "Verify against the log" })
        ] }),
        mayRebuild && /* @__PURE__ */ a3("p", { class: "dim", children: [
          "To check, verify or rebuild: ",
          mayRebuild
        ] }),
        saidAt("models"),
        /* @__PURE__ */ a3("div", { class: "scroll-x", tabIndex: 0, role: "region", "aria-label": "Table of read models", children: /* @__PURE__ */ a3("table", { children: [
          /* @__PURE__ */ a3("thead", { children: /* @__PURE__ */ a3("tr", { children: [
            /* @__PURE__ */ a3("th", { children: "Projection" }),
            /* @__PURE__ */ a3("th", { children: "State" }),
            /* @__PURE__ */ a3("th", { children: /* @__PURE__ */ a3("span", { class: "hidden", children: "Actions" }) }),
            /* @__PURE__ */ a3("th", { class: "n", children: "Lag" }),
            /* @__PURE__ */ a3("th", { class: "n", children: "Failed" }),
            /* @__PURE__ */ a3("th", { class: "n", children: "Checkpoint" }),
            /* @__PURE__ */ a3("th", { class: "n", children: "Events/s" }),
            /* @__PURE__ */ a3("th", { class: "n", children: "Partition" }),
            /* @__PURE__ */ a3("th", { class: "n", children: "Generation" }),
            /* @__PURE__ */ a3("th", { children: "Held by" })
          ] }) }),
          /* @__PURE__ */ a3("tbody", { children: s3.projections.map((x2) => /* @__PURE__ */ a3("tr", { children: [
            /* @__PURE__ */ a3("td", { children: x2.name }),
            /* @__PURE__ */ a3("td", { children: [
              /* @__PURE__ */ a3(State, { of: x2.state }),
              x2.error && /* @__PURE__ */ a3("div", { class: isBad(x2.state) ? "bad-text" : "dim", children: /* @__PURE__ */ a3(Text, { of: x2.error }) })
            ] }),
            /* @__PURE__ */ a3("td", { children: mayRebuild === void 0 && x2.partition === 0 && /* @__PURE__ */ a3("button", { class: "quiet", onClick: () => void act(
              "models",
              `Rebuild ${x2.name} from the log? The old one serves until the new one has caught up.`,
              "Starting the rebuild…",
              async () => {
                await post("/v1/rebuilds", { projection: x2.name });
                return `The rebuild of ${x2.name} has started.`;
              }
            ), children: "Rebuild" }) }),
            /* @__PURE__ */ a3("td", { class: "n", children: count(x2.lag) }),
            /* @__PURE__ */ a3("td", { class: "n", children: x2.partition === 0 && count(x2.failed) }),
            /* @__PURE__ */ a3("td", { class: "n", children: count(x2.checkpoint) }),
            /* @__PURE__ */ a3("td", { class: "n", children: count(Math.round(x2.rate)) }),
            /* @__PURE__ */ a3("td", { class: "n", children: x2.partition }),
            /* @__PURE__ */ a3("td", { class: "n", children: x2.generation }),
            /* @__PURE__ */ a3("td", { class: "nowrap", children: /* @__PURE__ */ a3(Text, { of: x2.holder ?? "" }) })
          ] }, `${x2.name}-${x2.generation}-${x2.partition}-${x2.store}`)) })
        ] }) }),
        s3.rebuilds.length > 0 && /* @__PURE__ */ a3($, { children: [
          /* @__PURE__ */ a3("h3", { children: "Rebuilds" }),
          /* @__PURE__ */ a3("ul", { class: "rebuilds", children: s3.rebuilds.map((r3) => /* @__PURE__ */ a3("li", { children: [
            /* @__PURE__ */ a3("b", { children: r3.projection }),
            ", generation ",
            r3.generation,
            ": ",
            r3.state,
            r3.total ? /* @__PURE__ */ a3($, { children: [
              " ",
              /* @__PURE__ */ a3("progress", { value: r3.applied ?? 0, max: r3.total, "aria-label": `Rebuild of ${r3.projection}` }),
              " ",
              count(r3.applied ?? 0),
              " of ",
              count(r3.total)
            ] }) : null,
            r3.eta_seconds !== void 0 && `, about ${count(Math.ceil(r3.eta_seconds))} s left`,
            r3.error && /* @__PURE__ */ a3("div", { class: "bad-text", children: /* @__PURE__ */ a3(Text, { of: r3.error }) })
          ] }, r3.projection)) })
        ] })
      ] }),
      /* @__PURE__ */ a3("section", { "aria-label": "Failed events", children: [
        /* @__PURE__ */ a3("div", { class: "bar", children: [
          /* @__PURE__ */ a3("h2", { children: "Failed events" }),
          /* @__PURE__ */ a3("span", { class: "space" }),
          (failed.data?.failed.length ?? 0) > 0 && /* @__PURE__ */ a3("button", { onClick: () => void act("failed", "Try all failed events again? Their conversations are rebuilt from the log.", "Trying again…", () => retry({ all: true })), children: "Retry all" })
        ] }),
        /* @__PURE__ */ a3(Notice, { error: failed.error, children: mayRetry !== void 0 ? mayRetry || "Loading…" : !failed.data ? "Loading…" : failed.data.failed.length === 0 ? "None. An event that a projection can't apply would be listed here, with the reason." : "The log keeps them. An invalid event breaks a rule: its producer must be fixed. An error could not be applied: fix the cause, then retry." }),
        saidAt("failed"),
        (failed.data?.failed.length ?? 0) > 0 && /* @__PURE__ */ a3("div", { class: "scroll-x", tabIndex: 0, role: "region", "aria-label": "Table of failed events", children: /* @__PURE__ */ a3("table", { children: [
          /* @__PURE__ */ a3("thead", { children: /* @__PURE__ */ a3("tr", { children: [
            /* @__PURE__ */ a3("th", { children: "Event" }),
            /* @__PURE__ */ a3("th", { children: "Projection" }),
            /* @__PURE__ */ a3("th", { children: "Class" }),
            /* @__PURE__ */ a3("th", { children: "Reason" }),
            /* @__PURE__ */ a3("th", { children: "Conversation" }),
            /* @__PURE__ */ a3("th", { children: /* @__PURE__ */ a3("span", { class: "hidden", children: "Actions" }) })
          ] }) }),
          /* @__PURE__ */ a3("tbody", { children: failed.data.failed.map((f4) => /* @__PURE__ */ a3("tr", { children: [
            /* @__PURE__ */ a3("td", { children: /* @__PURE__ */ a3("button", { class: "quiet seq", title: "Show the event as it is in the log", onClick: () => change({ event: String(f4.seq), ...f4.tenant === (tenant() ?? "default") ? {} : { tenant: f4.tenant } }), children: [
              "#",
              f4.seq
            ] }) }),
            /* @__PURE__ */ a3("td", { children: f4.projection }),
            /* @__PURE__ */ a3("td", { children: f4.class }),
            /* @__PURE__ */ a3("td", { children: /* @__PURE__ */ a3(Text, { of: f4.reason }) }),
            /* @__PURE__ */ a3("td", { children: /* @__PURE__ */ a3("a", { href: link({ c: f4.conversation, tenant: f4.tenant === "default" ? void 0 : f4.tenant }), children: /* @__PURE__ */ a3(Text, { of: f4.conversation }) }) }),
            /* @__PURE__ */ a3("td", { children: /* @__PURE__ */ a3("button", { class: "quiet", onClick: () => void act("failed", `Try event ${f4.seq} again? Its conversation is rebuilt from the log.`, "Trying again…", () => retry({ seq: f4.seq })), children: "Retry" }) })
          ] }, `${f4.projection}-${f4.seq}`)) })
        ] }) })
      ] }),
      s3 && s3.processes.length > 0 && /* @__PURE__ */ a3("section", { "aria-label": "Processes", children: [
        /* @__PURE__ */ a3("h2", { children: "Processes" }),
        /* @__PURE__ */ a3("div", { class: "scroll-x", tabIndex: 0, role: "region", "aria-label": "Table of processes", children: /* @__PURE__ */ a3("table", { children: [
          /* @__PURE__ */ a3("thead", { children: /* @__PURE__ */ a3("tr", { children: [
            /* @__PURE__ */ a3("th", { children: "Process" }),
            /* @__PURE__ */ a3("th", { children: "Program" }),
            /* @__PURE__ */ a3("th", { children: "Version" }),
            /* @__PURE__ */ a3("th", { children: "Started" }),
            /* @__PURE__ */ a3("th", { children: "State" }),
            /* @__PURE__ */ a3("th", { class: "n", children: "Lag" }),
            /* @__PURE__ */ a3("th", { class: "n", children: "Events/s" })
          ] }) }),
          /* @__PURE__ */ a3("tbody", { children: s3.processes.map((x2) => /* @__PURE__ */ a3("tr", { children: [
            /* @__PURE__ */ a3("td", { children: /* @__PURE__ */ a3(Text, { of: x2.name }) }),
            /* @__PURE__ */ a3("td", { children: x2.program }),
            /* @__PURE__ */ a3("td", { children: x2.version }),
            /* @__PURE__ */ a3("td", { class: "nowrap", children: /* @__PURE__ */ a3(Time, { of: x2.started }) }),
            /* @__PURE__ */ a3("td", { children: [
              /* @__PURE__ */ a3(State, { of: x2.state }),
              x2.error && /* @__PURE__ */ a3("div", { class: "dim", children: /* @__PURE__ */ a3(Text, { of: x2.error }) })
            ] }),
            /* @__PURE__ */ a3("td", { class: "n", children: count(x2.lag) }),
            /* @__PURE__ */ a3("td", { class: "n", children: count(Math.round(x2.rate)) })
          ] }, x2.name)) })
        ] }) })
      ] }),
      mayRebuild === void 0 && /* @__PURE__ */ a3(Settings, {})
    ] }) }),
    p3["event"] && /* @__PURE__ */ a3(EventPanel, { seq: p3["event"] })
  ] });
}
var isBad = (state) => ["halted", "damaged", "unavailable"].includes(state);
function State({ of }) {
  return /* @__PURE__ */ a3("span", { class: `state ${["live", "serving"].includes(of) ? "good" : isBad(of) ? "bad" : "busy"}`, children: of });
}
function Settings() {
  const [open, setOpen] = d2(false);
  const { data, error } = useGet(open ? "/v1/settings" : null);
  return /* @__PURE__ */ a3("details", { class: "settings", onToggle: (e3) => setOpen(e3.currentTarget.open), children: [
    /* @__PURE__ */ a3("summary", { children: "Settings in effect" }),
    open && (!data ? /* @__PURE__ */ a3(Notice, { error, children: "Loading…" }) : /* @__PURE__ */ a3("div", { class: "scroll-x", tabIndex: 0, role: "region", "aria-label": "Table of settings", children: /* @__PURE__ */ a3("table", { children: [
      /* @__PURE__ */ a3("thead", { children: /* @__PURE__ */ a3("tr", { children: [
        /* @__PURE__ */ a3("th", { children: "Setting" }),
        /* @__PURE__ */ a3("th", { children: "Value" }),
        /* @__PURE__ */ a3("th", { children: "From" }),
        /* @__PURE__ */ a3("th", { children: "Meaning" })
      ] }) }),
      /* @__PURE__ */ a3("tbody", { children: data.settings.map((x2) => /* @__PURE__ */ a3("tr", { children: [
        /* @__PURE__ */ a3("td", { class: "path", children: x2.name }),
        /* @__PURE__ */ a3("td", { class: "path", children: /* @__PURE__ */ a3(Text, { of: x2.value }) }),
        /* @__PURE__ */ a3("td", { children: x2.source }),
        /* @__PURE__ */ a3("td", { children: x2.meaning })
      ] }, x2.name)) })
    ] }) }))
  ] });
}
async function retry(body) {
  let applied = 0, failed = 0, after;
  const rebuilding = /* @__PURE__ */ new Set(), errors = /* @__PURE__ */ new Set();
  do {
    const r3 = await post("/v1/retries", { ...body, after });
    applied += r3.applied;
    failed += r3.failed;
    for (const c3 of r3.conversations) {
      if (c3.rebuilding) rebuilding.add(c3.projection);
      if (c3.error) errors.add(c3.error);
    }
    after = r3.next_after;
  } while (after);
  return [
    applied > 0 && `Applied: ${plural(applied, "event")}.`,
    failed > 0 && `Failed again: ${plural(failed, "event")}. The table says why.`,
    rebuilding.size > 0 && `A conversation is too large for a retry, so the rebuild of ${[...rebuilding].join(", ")} runs instead.`,
    ...[...errors].slice(0, 3)
  ].filter(Boolean).join(" ") || "There was nothing to retry.";
}
async function verify(say) {
  for await (const message of sent(await ask("/v1/verify/stream", { method: "POST" }))) {
    if (message.name === "progress") {
      const now = JSON.parse(message.data);
      say(`Replaying the log for ${now.projection}: ${count(now.done)} of ${count(now.total)} events.`);
    } else if (message.name === "error") {
      const { detail } = JSON.parse(message.data);
      throw new Problem(0, detail ?? "The verification failed.");
    } else if (message.name === "verified") {
      const v3 = JSON.parse(message.data);
      const bad = v3.projections.filter((x2) => !x2.equal);
      if (bad.length === 0) return `All ${v3.projections.length} read models equal the log.`;
      const where = bad.flatMap((x2) => (x2.differences ?? []).map((d3) => d3.conversation));
      return `${bad.map((x2) => x2.name).join(", ")} ${bad.length === 1 ? "differs" : "differ"} from the log in ${plural(where.length, "conversation")}: ${where.slice(0, 5).join(", ")}. A rebuild repairs it.`;
    }
  }
  throw new Problem(0, "The server ended the verification.");
}

// src/projects.tsx
function Projects() {
  useTitle("Projects");
  const access = useAccess();
  const { list, error, loading, more } = usePages(access && !access.project ? path("/v1/projects", [], { limit: 100 }) : null, "projects");
  return /* @__PURE__ */ a3("div", { class: "page", children: [
    /* @__PURE__ */ a3("h1", { children: "Projects" }),
    /* @__PURE__ */ a3(Notice, { error, children: (loading || !access) && list.length === 0 ? "Loading…" : list.length === 0 ? "No projects yet. A conversation belongs to the project that it names, or else to its repository or working folder." : `${plural(list.length, "project")}${more ? " so far" : ""}, by name` }),
    /* @__PURE__ */ a3("ul", { class: "cards", children: list.map((x2) => /* @__PURE__ */ a3("li", { children: [
      /* @__PURE__ */ a3("a", { class: "title", href: link({ view: "project", project: x2.name }), title: x2.name, children: /* @__PURE__ */ a3(Text, { of: shortPath(x2.name) }) }),
      /* @__PURE__ */ a3("p", { class: "facts", children: [
        /* @__PURE__ */ a3("span", { class: "path", children: /* @__PURE__ */ a3(Text, { of: x2.name }) }),
        /* @__PURE__ */ a3(Time, { of: x2.newest.updated_at })
      ] }),
      x2.newest.asked && /* @__PURE__ */ a3("p", { class: "quote", children: [
        /* @__PURE__ */ a3("span", { class: "dim", children: "asked last" }),
        " ",
        /* @__PURE__ */ a3(Text, { of: firstLine(x2.newest.asked, 160) })
      ] })
    ] }, x2.name)) }),
    more && /* @__PURE__ */ a3("button", { onClick: more, children: "Show more" })
  ] });
}
function ProjectView({ name, p: p3 }) {
  const max = p3["max"] ?? "8000";
  useTitle(shortPath(name), "Projects");
  const project = useGet(path("/v1/projects/{}", [name], { query: p3["q"] }), 200);
  const context = useGet(path("/v1/projects/{}/context", [name], { query: p3["q"], max_chars: max, explain: true, include_markdown: true }), 200);
  const bytes = p3["show"] === "bytes", only = useAccess()?.project;
  const shown3 = context.data?.sections.flatMap((s3) => s3.items).find((x2) => String(x2.seq) === p3["event"]);
  return /* @__PURE__ */ a3("div", { class: `body ${p3["event"] ? "with-event" : ""}`, children: [
    /* @__PURE__ */ a3("div", { class: "view", children: /* @__PURE__ */ a3("div", { class: "page", children: [
      /* @__PURE__ */ a3("h1", { title: name, children: /* @__PURE__ */ a3(Text, { of: shortPath(name) }) }),
      project.error ? /* @__PURE__ */ a3(Notice, { error: project.error }) : project.data && /* @__PURE__ */ a3("p", { class: "facts", children: [
        project.data.names.map((n2) => /* @__PURE__ */ a3("code", { class: "id", children: /* @__PURE__ */ a3(Text, { of: n2 }) }, n2)),
        /* @__PURE__ */ a3("a", { href: link({ project: name }), children: "All its conversations" }),
        !only && /* @__PURE__ */ a3("a", { href: link({ view: "insights", project: name }), children: "Insights" })
      ] }),
      /* @__PURE__ */ a3("section", { "aria-label": "Context of the project", children: [
        /* @__PURE__ */ a3("h2", { children: "What a new session would see" }),
        /* @__PURE__ */ a3("form", { class: "filters", onSubmit: (e3) => e3.preventDefault(), children: [
          /* @__PURE__ */ a3("input", { type: "search", "aria-label": "What the agent is going to do", placeholder: "What the agent is going to do", value: p3["q"] ?? "", onInput: (e3) => change({ q: e3.currentTarget.value }, true) }),
          /* @__PURE__ */ a3(Field, { label: "Budget", type: "number", min: "500", max: "1000000", step: "500", value: max, onDone: (v3) => change({ max: v3 }, true) }),
          /* @__PURE__ */ a3("div", { role: "group", "aria-label": "Show as", class: "choice", children: [
            /* @__PURE__ */ a3("button", { "aria-pressed": !bytes, onClick: () => change({ show: void 0 }), children: "Lines and reasons" }),
            /* @__PURE__ */ a3("button", { "aria-pressed": bytes, onClick: () => change({ show: "bytes" }), children: "Exact text" })
          ] })
        ] }),
        context.error ? /* @__PURE__ */ a3(Notice, { error: context.error }) : !context.data?.manifest ? /* @__PURE__ */ a3(Notice, { children: "Loading…" }) : /* @__PURE__ */ a3("div", { class: "context-of", "aria-busy": context.loading, children: [
          /* @__PURE__ */ a3(Budget, { data: context.data, lines: !bytes, left: true }),
          bytes ? /* @__PURE__ */ a3(Bytes, { data: context.data }) : /* @__PURE__ */ a3(Lines, { data: context.data }),
          /* @__PURE__ */ a3("h3", { id: "left", children: "Left out" }),
          /* @__PURE__ */ a3(Dropped, { data: context.data })
        ] })
      ] }),
      project.data && /* @__PURE__ */ a3("section", { "aria-label": "Conversations", children: [
        /* @__PURE__ */ a3("h2", { children: "Conversations" }),
        /* @__PURE__ */ a3(Notice, { children: [
          plural(project.data.conversations.length, "conversation"),
          ", newest first"
        ] }),
        /* @__PURE__ */ a3("ul", { class: "cards", children: project.data.conversations.map((s3) => /* @__PURE__ */ a3("li", { children: [
          /* @__PURE__ */ a3("a", { class: "title", href: link({ c: s3.id }), children: /* @__PURE__ */ a3(Text, { of: s3.title || s3.id }) }),
          /* @__PURE__ */ a3("p", { class: "facts", children: [
            s3.agent && /* @__PURE__ */ a3("span", { children: /* @__PURE__ */ a3(Text, { of: s3.agent }) }),
            /* @__PURE__ */ a3("span", { children: plural(s3.turn_count, "turn") }),
            s3.unanswered && /* @__PURE__ */ a3("span", { class: "badge", children: "not answered" }),
            /* @__PURE__ */ a3(Time, { of: s3.updated_at })
          ] })
        ] }, s3.id)) })
      ] })
    ] }) }),
    p3["event"] && /* @__PURE__ */ a3(EventPanel, { seq: p3["event"], of: only && shown3?.session })
  ] });
}

// src/tail.tsx
var kept2 = 2e3;
var before = 50;
var again = 2e3;
var redraw = 100;
var kinds = [
  "message_created",
  "tool_called",
  "tool_returned",
  "summary_written",
  "tool_condensed",
  "conversation_started",
  "conversation_updated",
  "conversation_deleted",
  "context_served",
  "project_aliased",
  "other"
];
function rowOf(s3) {
  const d3 = s3.event?.data ?? {};
  const text = d3["content"] ?? d3["result"] ?? d3["error"] ?? d3["title"] ?? d3["conversation"] ?? d3["query"] ?? d3["arguments"] ?? "";
  const name = typeof d3["tool_name"] === "string" ? d3["tool_name"] + " " : s3.kind === "context_served" ? `${d3["chars"]} characters as of #${d3["as_of"]} ` : "";
  return { seq: s3.seq, kind: s3.kind, conversation: s3.conversation_id, bytes: s3.bytes, time: s3.event?.time, text: s3.error ?? name + firstLine(asText(text), 200) };
}
var Follower = class {
  constructor(query, changed2) {
    this.query = query;
    this.changed = changed2;
  }
  query;
  changed;
  rows = [];
  held = [];
  // came while it is paused
  missed = 0;
  // came while it is paused, also those that are not kept
  paused = false;
  live = false;
  error;
  last = 0;
  control;
  timer = 0;
  start() {
    if (!this.control) void this.follow(this.control = new AbortController());
  }
  stop() {
    this.control?.abort();
    this.control = void 0;
    this.live = false;
    clearTimeout(this.timer);
    this.timer = 0;
  }
  pause(yes) {
    this.paused = yes;
    if (!yes) {
      this.rows = [...this.rows, ...this.held].slice(-kept2);
      this.held = [];
      this.missed = 0;
    }
    this.changed();
  }
  async follow(control) {
    while (!control.signal.aborted) {
      try {
        await this.connect(control.signal);
        this.error = void 0;
      } catch (e3) {
        if (control.signal.aborted) return;
        this.error = e3 instanceof Problem ? e3 : new Problem(0, "The connection was lost.");
      }
      this.live = false;
      const over = this.error !== void 0 && [401, 403, 422].includes(this.error.status);
      if (this.error) this.error.again = !over;
      this.changed();
      if (over) return;
      await new Promise((done) => setTimeout(done, again));
    }
  }
  async connect(signal) {
    let from;
    if (this.last === 0) {
      const { stream } = await getJSON("/v1/status", signal);
      from = Math.max(1, stream.head - before + 1);
    }
    const headers = this.last > 0 ? { "Last-Event-ID": String(this.last) } : {};
    const answer = await ask(path("/v1/stream", [], { ...this.query, from }), { signal, headers });
    this.live = true;
    this.error = void 0;
    this.changed();
    for await (const message of sent(answer)) {
      if (message.name !== "event") continue;
      const row = rowOf(JSON.parse(message.data));
      this.last = row.seq;
      const list = this.paused ? this.held : this.rows;
      list.push(row);
      if (list.length > kept2 + 200) list.splice(0, list.length - kept2);
      if (this.paused) this.missed++;
      this.timer ||= setTimeout(() => {
        this.timer = 0;
        this.changed();
      }, redraw);
    }
  }
};
function Tail({ p: p3 }) {
  const [, draw2] = d2(0);
  useTitle("Live");
  const held = T2(void 0);
  A2(() => {
    const follower = held.current = new Follower({ conversation: p3["conversation"], kind: p3["kind"] }, () => draw2((n2) => n2 + 1));
    const look = () => document.hidden ? follower.stop() : follower.start();
    look();
    document.addEventListener("visibilitychange", look);
    return () => {
      follower.stop();
      document.removeEventListener("visibilitychange", look);
    };
  }, [p3["conversation"], p3["kind"]]);
  const f4 = held.current;
  const rows = f4?.rows ?? [], newest = rows.length - 1;
  const selected = p3["event"] ? rows.findIndex((r3) => r3.seq === Number(p3["event"])) : -1;
  const select = (i3) => {
    f4?.pause(true);
    change({ event: String(rows[newest - i3].seq) }, true);
  };
  const state = !f4 || f4.error ? "waits" : f4.paused ? "paused" : f4.live ? "live" : "connecting";
  return /* @__PURE__ */ a3("div", { class: `body tail ${p3["event"] ? "with-event" : ""}`, children: [
    /* @__PURE__ */ a3("div", { class: "view", children: [
      /* @__PURE__ */ a3("div", { class: "tailhead", children: [
        /* @__PURE__ */ a3("div", { class: "bar", children: [
          /* @__PURE__ */ a3("h1", { children: "Live" }),
          /* @__PURE__ */ a3("span", { class: `state ${state === "live" ? "good" : state === "waits" ? "bad" : "busy"}`, role: "status", children: state }),
          /* @__PURE__ */ a3("span", { class: "space" }),
          /* @__PURE__ */ a3("button", { class: f4?.paused ? "primary" : "", onClick: () => f4?.pause(!f4.paused), children: f4?.paused ? `Continue${f4.missed > 0 ? `, ${count(f4.missed)} new` : ""}` : "Pause" })
        ] }),
        /* @__PURE__ */ a3("form", { class: "filters", onSubmit: (e3) => e3.preventDefault(), children: [
          /* @__PURE__ */ a3("label", { children: [
            "Kind ",
            /* @__PURE__ */ a3("select", { value: p3["kind"] ?? "", onChange: (e3) => change({ kind: e3.currentTarget.value }), children: [
              /* @__PURE__ */ a3("option", { value: "", children: "all" }),
              kinds.map((k2) => /* @__PURE__ */ a3("option", { value: k2, children: k2.replace("_", " ") }, k2))
            ] })
          ] }),
          /* @__PURE__ */ a3(Field, { label: "Conversation", type: "text", placeholder: "all, or an id", value: p3["conversation"] ?? "", onDone: (v3) => change({ conversation: v3.trim() }) }),
          p3["conversation"] && /* @__PURE__ */ a3("a", { href: link({ c: p3["conversation"] }), children: "Open this conversation" })
        ] }),
        f4?.error ? /* @__PURE__ */ a3(Notice, { error: f4.error }) : /* @__PURE__ */ a3(Notice, { children: rows.length === 0 ? "No events yet. They appear here as soon as an agent publishes them." : `The newest ${plural(Math.min(rows.length, kept2), "event")}, latest first. This page keeps at most ${count(kept2)}.` })
      ] }),
      /* @__PURE__ */ a3(Rows, { label: "Events", count: rows.length, height: 52, selected: selected < 0 ? -1 : newest - selected, onSelect: select, row: (i3) => {
        const r3 = rows[newest - i3];
        return /* @__PURE__ */ a3($, { children: [
          /* @__PURE__ */ a3("span", { class: "number", children: [
            "#",
            r3.seq
          ] }),
          /* @__PURE__ */ a3("span", { class: "what", children: [
            /* @__PURE__ */ a3("b", { children: r3.kind.replace("_", " ") }),
            " ",
            /* @__PURE__ */ a3(Text, { of: r3.text })
          ] }),
          /* @__PURE__ */ a3("span", { class: "facts", children: [
            /* @__PURE__ */ a3(Time, { of: r3.time }),
            /* @__PURE__ */ a3("span", { children: /* @__PURE__ */ a3(Text, { of: r3.conversation }) }),
            /* @__PURE__ */ a3("span", { children: [
              count(r3.bytes),
              " bytes"
            ] })
          ] })
        ] });
      } })
    ] }),
    p3["event"] && /* @__PURE__ */ a3(EventPanel, { seq: p3["event"] })
  ] });
}

// src/main.tsx
var keys = (only) => [
  ["/", "go to the search field"],
  ["j  k", "next and previous row"],
  ["1 … 8", "tabs of a conversation"],
  ["[  ]", "the context one turn earlier or later"],
  ["p", "play the context turn by turn"],
  ...places(only).map(({ key, name }) => [key, name.toLowerCase()]),
  ["Esc", "close the event"],
  ["?", "this list"]
];
var unkept = "The browser did not send the session cookie. Check that it accepts cookies. Behind a proxy, check that the proxy adds no Authorization header, and sends X-Forwarded-Proto: https only if the browser uses TLS.";
function SignIn({ state }) {
  useTitle("Sign in");
  const field = T2(null);
  const [wrong, setWrong] = d2("");
  const submit = (e3) => {
    e3.preventDefault();
    session.start(field.current.value.trim()).then(session.get).then(
      (now) => now.signed_in ? location.reload() : setWrong(unkept),
      (problem) => setWrong(problem.status === 401 ? "The server refused this token. It may be mistyped, revoked or expired." : problem.message)
    );
  };
  A2(() => field.current?.focus(), []);
  return /* @__PURE__ */ a3("main", { id: "main", class: "signin", tabIndex: -1, children: [
    /* @__PURE__ */ a3("h1", { children: "Sign in" }),
    state.ended && /* @__PURE__ */ a3("p", { class: "notice error", role: "alert", children: "You are signed out: your token has expired or was revoked." }),
    state.problem && /* @__PURE__ */ a3("p", { class: "notice error", role: "alert", children: state.problem }),
    state.provider && /* @__PURE__ */ a3("p", { children: /* @__PURE__ */ a3("a", { class: "button primary", href: `/signin?${new URLSearchParams({ view: location.search.slice(1) })}`, children: [
      "Sign in at ",
      new URL(state.provider).host
    ] }) }),
    state.tokens && /* @__PURE__ */ a3($, { children: [
      /* @__PURE__ */ a3("p", { children: [
        wrong || (state.provider || state.problem ? "Or use a token." : state.ended ? "Sign in again with another token." : "This server requires a token."),
        " Make one with ",
        /* @__PURE__ */ a3("code", { children: "mneme tokens create" }),
        ". It is kept until you close the browser, in a cookie that no script can read."
      ] }),
      /* @__PURE__ */ a3("form", { onSubmit: submit, children: [
        /* @__PURE__ */ a3("label", { children: [
          "Token ",
          /* @__PURE__ */ a3("input", { ref: field, type: "password", autocomplete: "off", spellcheck: false, required: true })
        ] }),
        /* @__PURE__ */ a3("button", { class: state.provider ? void 0 : "primary", children: "Sign in" })
      ] })
    ] }),
    !state.provider && !state.tokens && /* @__PURE__ */ a3("p", { children: [
      "This server accepts only tokens of an identity provider, and signing in there is not set up: its operator can set ",
      /* @__PURE__ */ a3("code", { children: "MNEME_OIDC_CLIENT_ID" }),
      "."
    ] })
  ] });
}
function Keys({ only, close }) {
  const dialog = T2(null);
  A2(() => dialog.current?.showModal(), []);
  return /* @__PURE__ */ a3("dialog", { ref: dialog, onClose: close, "aria-labelledby": "keys-title", children: [
    /* @__PURE__ */ a3("h2", { id: "keys-title", children: "Keyboard shortcuts" }),
    /* @__PURE__ */ a3("dl", { children: keys(only).map(([key, what]) => /* @__PURE__ */ a3("div", { children: [
      /* @__PURE__ */ a3("dt", { children: /* @__PURE__ */ a3("kbd", { children: key }) }),
      /* @__PURE__ */ a3("dd", { children: what })
    ] }, key)) }),
    /* @__PURE__ */ a3("p", { children: /* @__PURE__ */ a3("a", { href: "/help", children: "Documentation of this version" }) }),
    /* @__PURE__ */ a3("form", { method: "dialog", children: /* @__PURE__ */ a3("button", { children: "Close" }) })
  ] });
}
function places(only) {
  return [{ key: "h", name: "Conversations", at: {} }, ...only ? [{ key: "r", name: "Project", at: { view: "project", project: only } }] : [{ key: "r", name: "Projects", at: { view: "projects" } }, { key: "i", name: "Insights", at: { view: "insights" } }, { key: "l", name: "Live", at: { view: "tail" } }, { key: "o", name: "Operations", at: { view: "operations" } }]];
}
function useKeys(help, only) {
  A2(() => {
    const press = (e3) => {
      const field = e3.target.matches("input, select, textarea");
      if (e3.ctrlKey || e3.metaKey || e3.altKey || field && e3.key !== "Escape" || document.querySelector("dialog[open]")) return;
      const c3 = params()["c"], place = places(only).find((x2) => x2.key === e3.key);
      if (e3.key === "/") document.querySelector("input[type=search]")?.focus();
      else if (e3.key === "?") help();
      else if (place) go(link(place.at));
      else if (e3.key === "Escape" && field) e3.target.blur();
      else if (e3.key === "Escape" && params()["event"]) change({ event: void 0 });
      else if (c3 && views[Number(e3.key) - 1]) go(link({ c: c3, view: views[Number(e3.key) - 1][0] }));
      else return;
      e3.preventDefault();
    };
    addEventListener("keydown", press);
    return () => removeEventListener("keydown", press);
  }, [only]);
}
var again2 = 2e3;
function App() {
  const p3 = useParams();
  const [state, setState] = d2();
  const [help, setHelp] = d2(false);
  const look = () => {
    session.get().then(setState, unknown);
  };
  const unknown = (e3) => setState({ needed: false, signed_in: false, ended: false, tokens: false, problem: e3.message });
  session.onNeeded(look);
  A2(look, []);
  A2(() => {
    if (!state?.problem) return;
    const timer = setTimeout(look, again2);
    return () => clearTimeout(timer);
  }, [state]);
  const only = useAccess(!!state && (!state.needed || state.signed_in) && !state.problem)?.project;
  useKeys(() => setHelp(true), only);
  const view = p3["c"] ? "conversation" : ["projects", "project", "insights", "tail", "operations"].includes(p3["view"] ?? "") ? p3["view"] : "";
  return /* @__PURE__ */ a3($, { children: [
    /* @__PURE__ */ a3("a", { class: "skip", href: "#main", children: "Skip to the content" }),
    /* @__PURE__ */ a3("header", { class: "top", children: [
      /* @__PURE__ */ a3("a", { class: "brand", href: link({}), children: "mneme" }),
      /* @__PURE__ */ a3("nav", { "aria-label": "Views", children: places(only).map(({ name, at }) => /* @__PURE__ */ a3("a", { href: link(at), "aria-current": view === (at["view"] ?? "") ? "page" : void 0, children: name }, name)) }),
      /* @__PURE__ */ a3("span", { class: "space" }),
      state?.needed && state.signed_in && /* @__PURE__ */ a3("button", { class: "quiet", onClick: () => {
        session.end().finally(() => location.reload());
      }, children: "Sign out" }),
      /* @__PURE__ */ a3("a", { class: "help", href: "/help", children: "Help" }),
      /* @__PURE__ */ a3("button", { class: "quiet", onClick: () => setHelp(true), "aria-label": "Keyboard shortcuts", title: "Keyboard shortcuts", children: "?" })
    ] }),
    help && /* @__PURE__ */ a3(Keys, { only, close: () => setHelp(false) }),
    state?.needed && !state.signed_in ? /* @__PURE__ */ a3(SignIn, { state }) : /* @__PURE__ */ a3("main", { id: "main", tabIndex: -1, "aria-busy": !state, children: !state ? null : view === "conversation" ? /* @__PURE__ */ a3(ConversationView, { id: p3["c"], p: p3 }, p3["c"]) : view === "projects" ? only ? /* @__PURE__ */ a3(ProjectView, { name: only, p: p3 }) : /* @__PURE__ */ a3(Projects, {}) : view === "project" ? /* @__PURE__ */ a3(ProjectView, { name: p3["project"] ?? "", p: p3 }) : view === "insights" ? /* @__PURE__ */ a3(Insights, { p: p3 }) : view === "tail" ? /* @__PURE__ */ a3(Tail, { p: p3 }) : view === "operations" ? /* @__PURE__ */ a3(Operations, { p: p3 }) : /* @__PURE__ */ a3(Conversations, { p: p3 }) })
  ] });
}
Q(/* @__PURE__ */ a3(App, {}), document.getElementById("app"));
