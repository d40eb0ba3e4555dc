import { h, render, Fragment } from "preact";
import { useState, useEffect, useLayoutEffect, useMemo, useRef, useCallback } from "preact/hooks";
import htm from "htm";
const html = htm.bind(h);
export { h, html, render, Fragment, useState, useEffect, useLayoutEffect, useMemo, useRef, useCallback };
