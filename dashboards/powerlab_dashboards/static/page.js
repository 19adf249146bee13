// Entry point of every page.

import { watchPngs } from "./chart_points.js";
import { drawAll } from "./charts.js";
import { watchCopies } from "./copy.js";
import { followKeys } from "./keys.js";
import { follow } from "./live.js";
import { followReadings, keepCounting } from "./readings.js";
import { watchChoices } from "./sweep.js";
import { makeSortable } from "./tables.js";
import { keepTimes } from "./times.js";
import { zoomAll } from "./zoom.js";

makeSortable();
drawAll().then(() => zoomAll());
followKeys();
follow(); // compares the parts as the server sent them, so before any is changed
keepTimes();
keepCounting();
followReadings();
watchChoices();
watchCopies();
watchPngs();
