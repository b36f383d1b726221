package main

import "time"

// The edges of robfig's grammar, the same for every seed.
var edgeSpecs = []string{
	"", " ", "*", "* *", "* * *", "* * * *", "* * * * * *", "60 * * * *", "-1 * * * *", "* 24 * * *",
	"* * 0 * *", "* * 32 * *", "* * * 0 *", "* * * 13 *", "* * * * 7", "* * * * 0-7", "* * * * -1",
	"5-1 * * * *", "*/0 * * * *", "1-5/0 * * * *", "1-2-3 * * * *", "1/2/3 * * * *", "a * * * *", "* * * foo *",
	"* * * * funday", "@", "@never", "@every", "@every 1", "@every x", "@every -1s", "@every 0s", "TZ=UTC",
	"TZ=", "TZ= * * * * *", "TZ=Nowhere/Land * * * * *", "CRON_TZ=Mars/Phobos 0 0 * * *", "TZ=America/New_York",
	"TZ=0", "TZ=UTC\t* * * * *", "1,2,, * * * *", ", * * * *", "1, * * * *", ",1 * * * *", "*-5 * * * *",
	"*/ * * * *", "/5 * * * *", "5- * * * *", "-5 * * * *", "+5 * * * *", "5.0 * * * *", "0x5 * * * *",
	"１ * * * *", "99999999999999999999 * * * *", "* * L * *", "* * 15W * *", "* * * * 5#3", "H * * * *",
	"?/5 * * * *", "*,5 * * * *", "5,* * * * *", "* * ? * ?", "* * 1 * ?", "* * ? * 1", "0 0 31 2 *",
	"59 23 31 2 *", "0 0 30 2 *", "0 0 29 2 *", "0 0 31 4,6,9,11 *", "0 0 29 2 1", "0 0 */2 * 1", "0 0 1 * */2",
	"0 0 1-31 * 1", "0 0 * * 0-6", "0 0 13 * 5", "@Daily", "@DAILY", "@reboot", "@every 1h 30m",
	"@every 1h30m ", "* * * * *\n", "\t* * * * *", " * * * * *", "* * * * * ", "*\t*\t*\t*\t*",
	"* * * jan-MAR *", "* * * * sun-SAT", "* * * * sat-sun", "* * * nov-feb *", "00 00 * * *", "007 * * * *",
	"0-59/15 * * * *", "0/15 * * * *", "59/15 * * * *", "* * * * 5/1", "TZ=Local * * * * *",
	"TZ=local * * * * *", "TZ=../etc/passwd * * * * *", "TZ=UTC TZ=UTC * * * * *",
	"CRON_TZ=UTC CRON_TZ=Asia/Tokyo 0 0 * * *", "tz=UTC * * * * *", "TZ=utc * * * * *", "TZ=EST5EDT 0 2 * * *",
	"TZ=EST 0 2 * * *", "TZ=GMT+5 0 0 * * *", "TZ=Etc/GMT-14 0 0 * * *", "TZ=Asia/Calcutta 0 0 * * *",
	"TZ=US/Pacific 30 2 * * *", "TZ=america/new_york 0 0 * * *", "@every 1d", "@every 1.5h", "@every 999999h",
	"@every 9999999h", "@every 1ns", "* * * * 1-5,6", "*/60 * * * *", "*/59 * * * *", "*/100 * * * *",
	"0 */24 * * *", "0 0 */32 * *", "@hourly ", " @hourly", "@ hourly", "@every\t1h", "1-1 * * * *",
	"0-0/1 * * * *", "*/1-5 * * * *", "1-*/5 * * * *",
}

// Around the leap days that a century leaves out: the search for them ends after five years.
var (
	leapDaySpecs = []string{"0 0 29 2 *", "TZ=Asia/Tokyo 0 0 29 2 *", "59 23 29 2 1", "0 0 29 2 0-6"}
	leapDayTimes = []time.Time{
		time.Date(2096, 3, 1, 0, 0, 0, 0, time.UTC),
		time.Date(2098, 3, 1, 0, 0, 0, 0, time.UTC),
		time.Date(2024, 2, 29, 0, 0, 1, 0, time.UTC),
	}
)
